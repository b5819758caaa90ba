//! The orders that a request speaks of, and what the rules want to know of their units.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::order::OrderLine;
use domain::returns::{PurchasedUnit, Resolution, UnitFacts, UnitId};
use platform::database::DatabaseError;

use crate::ledger::{Unit, unit_id};
use crate::store;
use crate::store::orders::{Projected, Reading};
use crate::store::returns::Holder;

pub(crate) struct Shelf {
    pub(crate) orders: BTreeMap<String, Projected>,
    held: HashMap<UnitId, Holder>,
    /// The orders that can have no other exchange.
    exchanged: BTreeSet<String>,
}

/// A unit of an order: which of its lines, and the number there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    line: usize,
    number: i32,
}

/// A unit that an order speaks of, on the ledger or not yet.
#[derive(Clone, Copy)]
pub(crate) struct Shelved<'a> {
    pub(crate) projected: &'a Projected,
    pub(crate) line: &'a OrderLine,
    pub(crate) unit: Option<&'a Unit>,
    holder: Option<&'a Holder>,
    /// Whether its order can have no other exchange.
    pub(crate) is_order_exchanged: bool,
}

impl Shelf {
    pub(crate) async fn load(
        conn: &mut AsyncPgConnection,
        merchant: &MerchantId,
        orders: &BTreeSet<&str>,
        reading: Reading,
    ) -> Result<Self, DatabaseError> {
        let identifiers: Vec<_> = orders.iter().copied().collect();
        let found = store::orders::find(conn, merchant, &identifiers, reading).await?;
        let keys: Vec<_> = identifiers.iter().map(|order| (merchant.as_str(), *order)).collect();
        let mut held = store::returns::held(conn, &keys).await?;
        let held = held.remove(merchant.as_str()).unwrap_or_default();
        Ok(Self {
            orders: found.into_iter().map(|it| (it.order.identifier.clone(), it)).collect(),
            held,
            exchanged: store::returns::exchanged(conn, merchant, &identifiers).await?,
        })
    }

    /// The unit, when there is such a line of such an order and it has that many units.
    pub(crate) fn unit(&self, id: &UnitId) -> Option<Shelved<'_>> {
        let projected = self.orders.get(&id.order_identifier)?;
        let mut lines = projected.order.items.iter();
        let line = lines.find(|line| line.identifier == id.order_line_item_identifier)?;
        let shelved = self.shelve(projected, line, id);
        let is_of_line = shelved.unit.is_some() || i64::from(id.unit) <= line.quantity;
        is_of_line.then_some(shelved)
    }

    /// All units of an order's lines, in the order of the lines and of their numbers.
    pub(crate) fn places(projected: &Projected) -> Vec<Place> {
        let of_line = |(index, line): (usize, &OrderLine)| {
            let ordered = 1..=i32::try_from(line.quantity).unwrap_or(i32::MAX);
            let shipped = projected.ledger.units(&line.identifier).iter().map(|it| it.unit);
            let numbers: BTreeSet<_> = ordered.chain(shipped).collect();
            numbers.into_iter().map(move |number| Place { line: index, number })
        };
        projected.order.items.iter().enumerate().flat_map(of_line).collect()
    }

    /// The unit at one of an order's [places](Self::places).
    pub(crate) fn at(&self, order: &str, place: Place) -> Option<(UnitId, Shelved<'_>)> {
        let projected = self.orders.get(order)?;
        let line = projected.order.items.get(place.line)?;
        let id = unit_id(order, &line.identifier, place.number);
        let shelved = self.shelve(projected, line, &id);
        Some((id, shelved))
    }

    fn shelve<'a>(
        &'a self,
        projected: &'a Projected,
        line: &'a OrderLine,
        id: &UnitId,
    ) -> Shelved<'a> {
        Shelved {
            projected,
            line,
            unit: projected.ledger.unit(&line.identifier, id.unit),
            holder: self.held.get(id),
            is_order_exchanged: self.is_exchanged(&id.order_identifier),
        }
    }

    /// About how many bytes it is made of.
    pub(crate) fn weight(&self) -> usize {
        let held = |(id, holder): (&UnitId, &Holder)| {
            let UnitId { order_identifier, order_line_item_identifier, .. } = id;
            let names = [order_identifier, order_line_item_identifier, &holder.rma_identifier];
            size_of::<(UnitId, Holder)>() + names.map(String::len).iter().sum::<usize>()
        };
        let orders: usize = self.orders.values().map(|it| it.weight).sum();
        orders + self.held.iter().map(held).sum::<usize>()
    }

    /// Whether an exchange was asked for against an order and keeps its place there.
    pub(crate) fn is_exchanged(&self, order: &str) -> bool {
        self.exchanged.contains(order)
    }
}

impl<'a> Shelved<'a> {
    /// What is true of the unit, if this is wanted for it.
    pub(crate) fn facts(&self, wanted: &Resolution) -> UnitFacts<'a> {
        UnitFacts {
            order_status: self.projected.order.status,
            order_created_at: self.projected.order.created_at,
            is_shipped: self.unit.is_some(),
            shipped_at: self.line.shipped_date,
            line_tags: &self.line.tags,
            rma_identifier: self.holder.map(|holder| holder.rma_identifier.as_str()),
            is_refunded: self.unit.is_some_and(|unit| unit.refund.is_some()),
            is_second_exchange: self.is_order_exchanged && *wanted != Resolution::Refund,
        }
    }

    pub(crate) fn has_variants(&self) -> bool {
        self.line.variant_identifier.is_some()
    }

    /// What the unit is known by: its UPC where the order gives no SKU.
    pub(crate) fn sku(&self) -> String {
        self.line.sku.clone().or_else(|| self.line.upc.clone()).unwrap_or_default()
    }

    pub(crate) fn terms(&self) -> PurchasedUnit {
        PurchasedUnit {
            sku: self.sku(),
            upc: self.line.upc.clone(),
            unit_price_amount_cents: self.line.unit_price_amount_cents,
            amounts: self.unit.map(|unit| unit.amounts).unwrap_or_default(),
            original_order_identifier: self.projected.original_order_identifier.clone(),
        }
    }
}
