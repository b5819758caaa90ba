//! Units of expired returns that are sent late.
//!
//! A unit becomes part of its return again if it is still free, which its order says. Orders are locked before returns,
//! so the returns are first read without locks. A return that expires in between is an error, and the request or event
//! is processed again.
//!
//! See docs/decisions/deadlines.md.

use std::collections::{BTreeSet, HashMap};

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::returns::{Rma, UnitId};

use crate::error::Error;
use crate::orders::units::OrderUnits;
use crate::store;
use crate::store::orders::{ResourceKey, RowLock};

/// The locked orders of expired units, by merchant.
#[derive(Default)]
pub(crate) struct FreeUnits(HashMap<String, OrderUnits>);

impl FreeUnits {
    /// Locks the orders of the expired units of the named returns and of the returns in these parcels.
    pub(crate) async fn lock(
        conn: &AsyncPgConnection,
        named: &[ResourceKey<'_>],
        parcels: &[ResourceKey<'_>],
    ) -> Result<Self, Error> {
        let mut returns = Vec::new();
        for row in store::returns::find_requested(conn, named, parcels).await? {
            returns.extend(row.read()?);
        }
        let orders: BTreeSet<_> = returns
            .iter()
            .flat_map(|rma| rma.expired_units().map(|unit| (rma.merchant.as_str(), unit)))
            .map(|(merchant, unit)| (merchant, unit.id.order_identifier.as_str()))
            .collect();
        if orders.is_empty() {
            return Ok(Self::default());
        }
        Ok(Self(OrderUnits::load_all(conn, &orders, RowLock::Update).await?))
    }

    /// Fails if the return expired after its orders should have been locked. `is_sent` says whether a carrier or the
    /// warehouse has its units.
    pub(crate) fn check(&self, rma: &Rma, is_sent: bool) -> Result<(), Error> {
        let is_locked = |unit: &UnitId| {
            let of_merchant = self.0.get(rma.merchant.as_str());
            of_merchant.is_some_and(|it| it.orders.contains_key(&unit.order_identifier))
        };
        if is_sent && !rma.expired_units().all(|unit| is_locked(&unit.id)) {
            return Err(Error::ExpiredMeanwhile(rma.rma_identifier.clone()));
        }
        Ok(())
    }

    /// Whether the unit can be returned again.
    pub(crate) fn has(&self, merchant: &MerchantId, unit: &UnitId) -> bool {
        let found = self.0.get(merchant.as_str()).and_then(|it| it.unit(unit));
        found.is_some_and(|unit| unit.is_free())
    }
}
