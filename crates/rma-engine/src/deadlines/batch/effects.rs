//! The effects that deadlines have beside the returns that they change.

use std::collections::{BTreeMap, BTreeSet};

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::merchant::Merchant;
use domain::returns::{Change, DeadlineKind, ReturnConfirmed, Rma, RmaStatus, UnitId};
use messaging::Outbox;
use platform::Timestamp;

use crate::error::Error;
use crate::projection;
use crate::returns::reviews;
use crate::store;
use crate::store::orders::Projected;

/// Orders by merchant and identifier.
pub(super) type Orders = BTreeMap<(String, String), Projected>;

#[derive(Default)]
pub(super) struct Effects {
    /// Orders with units that are free again.
    released: BTreeMap<MerchantId, BTreeSet<String>>,
    /// Units whose exchange is not requested after all, with their returns.
    unrequested: Vec<(MerchantId, String, Vec<UnitId>)>,
    /// The exchanges of approved returns.
    confirmed: Vec<ReturnConfirmed>,
}

impl Effects {
    /// Adds those of a return that a deadline changed. `orders` has the orders of the return.
    pub(super) fn add(
        &mut self,
        kind: DeadlineKind,
        rma: &Rma,
        change: &Change,
        (merchant, orders): (Option<&Merchant>, &Orders),
        now: Timestamp,
    ) -> Result<(), Error> {
        let is_declined = rma.status == RmaStatus::Declined;
        match kind {
            DeadlineKind::Send => self.release(rma, change),
            DeadlineKind::Exchange | DeadlineKind::Reminder => {}
            DeadlineKind::Review if is_declined => {
                self.release(rma, change);
                let units = reviews::unrequested_exchanges(rma, change);
                self.unrequested.push((rma.merchant.clone(), rma.rma_identifier.clone(), units));
            }
            DeadlineKind::Review => {
                let unknown = || Error::Internal(format!("merchant {} is unknown", rma.merchant));
                let order = |name: &str| {
                    let key = (rma.merchant.to_string(), name.to_owned());
                    orders.get(&key).map(|it| &it.order)
                };
                let merchant = merchant.ok_or_else(unknown)?;
                self.confirmed.extend(reviews::confirmed(merchant, rma, order, now));
            }
        }
        Ok(())
    }

    fn release(&mut self, rma: &Rma, change: &Change) {
        let of_merchant = self.released.entry(rma.merchant.clone()).or_default();
        of_merchant.extend(change.units.iter().map(|unit| unit.order_identifier.clone()));
    }

    /// Writes them, after the returns were saved.
    pub(super) async fn apply(
        self,
        conn: &mut AsyncPgConnection,
        outbox: &Outbox,
        mut orders: Orders,
        now: Timestamp,
    ) -> Result<(), Error> {
        let Self { released, unrequested, confirmed } = self;
        for (merchant, rma, units) in unrequested.iter().filter(|(_, _, units)| !units.is_empty()) {
            store::units::release_exchange(conn, merchant, rma, units).await?;
        }
        outbox.append(conn, now, confirmed).await?;
        for (merchant, released) in released {
            let take = |order: String| orders.remove(&(merchant.to_string(), order));
            let released: Vec<_> = released.into_iter().filter_map(take).collect();
            projection::reconcile_again(conn, &merchant, released, now).await?;
        }
        Ok(())
    }
}
