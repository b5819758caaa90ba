//! The orders of a request and the facts about their units that eligibility checks need.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::merchant::Merchant;
use domain::order::OrderLine;
use domain::policy::{ShopperFacts, UnitFacts};
use domain::returns::{PurchasedUnit, ReturnMethod, Rma, UnitId};
use futures_util::future::join;
use platform::Timestamp;
use platform::database::DatabaseError;

use crate::shipped_units::{Unit, unit_id};
use crate::store;
use crate::store::orders::{Projected, ResourceKey, RowLock};
use crate::store::units::{Holder, ReturnedUnits};

/// Orders of one merchant.
#[derive(Default)]
pub(crate) struct OrderUnits {
    pub(crate) orders: BTreeMap<String, Projected>,
    returned: ReturnedUnits,
    /// The shoppers of orders about whom rules ask, by the identifier of the order.
    shoppers: HashMap<String, ShopperFacts>,
    /// The units that shoppers keep, by the identifier of the order. Loaded only if a rule limits them.
    kept: HashMap<String, KeptUnits>,
}

/// The units of an order that the shopper keeps by returns that are not canceled.
#[derive(Default)]
struct KeptUnits {
    /// The amount paid for all of them.
    paid_cents: i64,
    /// The start of the return and the amount paid of each unit.
    units: Vec<(Timestamp, i64)>,
}

/// A unit of an order: the index of its line and its number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitRef {
    line: usize,
    number: i32,
}

/// A unit of an order line; `unit` is `None` until it ships.
#[derive(Clone, Copy)]
pub(crate) struct LoadedUnit<'a> {
    pub(crate) projected: &'a Projected,
    pub(crate) line: &'a OrderLine,
    pub(crate) unit: Option<&'a Unit>,
    holder: Option<&'a Holder>,
    shopper: &'a ShopperFacts,
    /// Whether the order cannot have another exchange.
    pub(crate) is_order_exchanged: bool,
    /// The amount paid for units of the order that the shopper keeps.
    order_kept_cents: i64,
}

impl KeptUnits {
    fn add(&mut self, started_at: Timestamp, paid_cents: i64) {
        self.paid_cents += paid_cents;
        self.units.push((started_at, paid_cents));
    }
}

impl OrderUnits {
    /// Loads orders of one merchant.
    pub(crate) async fn load(
        conn: &AsyncPgConnection,
        merchant: &MerchantId,
        orders: &BTreeSet<&str>,
        row_lock: RowLock,
    ) -> Result<Self, DatabaseError> {
        let keys = orders.iter().map(|order| (merchant.as_str(), *order)).collect();
        let mut loaded = Self::load_all(conn, &keys, row_lock).await?;
        Ok(loaded.remove(merchant.as_str()).unwrap_or_default())
    }

    /// Loads orders, by merchant.
    pub(crate) async fn load_all(
        conn: &AsyncPgConnection,
        orders: &BTreeSet<ResourceKey<'_>>,
        row_lock: RowLock,
    ) -> Result<HashMap<String, Self>, DatabaseError> {
        // Both statements are sent at once and run in this order: units are read under the lock of their order.
        let (found, returned) =
            join(store::orders::find(conn, orders, row_lock), store::units::returned(conn, orders))
                .await;
        let mut loaded = HashMap::<String, Self>::new();
        for (merchant, projected) in found? {
            let of_merchant = loaded.entry(merchant).or_default();
            of_merchant.orders.insert(projected.order.identifier.clone(), projected);
        }
        for (merchant, returned) in returned? {
            loaded.entry(merchant).or_default().returned = returned;
        }
        Ok(loaded)
    }

    /// Loads the units of these orders that are held by returns.
    pub(crate) async fn load_returned(
        &mut self,
        conn: &AsyncPgConnection,
        merchant: &MerchantId,
    ) -> Result<(), DatabaseError> {
        let keys = self.orders.keys().map(|order| (merchant.as_str(), order.as_str())).collect();
        let mut returned = store::units::returned(conn, &keys).await?;
        self.returned = returned.remove(merchant.as_str()).unwrap_or_default();
        Ok(())
    }

    /// Loads the facts about the shoppers of these orders that the merchant's rules ask for, as [`load_shoppers`] does.
    pub(crate) async fn load_shoppers(
        &mut self,
        conn: &AsyncPgConnection,
        merchant: &Merchant,
        now: Timestamp,
    ) -> Result<(), DatabaseError> {
        load_shoppers(conn, [(merchant, self)], now).await
    }

    /// Adds the units of a new return.
    pub(crate) fn add_return(&mut self, rma: &Rma) {
        for unit in &rma.units {
            let holder = Holder { rma_identifier: rma.rma_identifier.clone() };
            self.returned.held.insert(unit.id.clone(), holder);
            if rma.return_method == ReturnMethod::CustomerKeep {
                let of_order = self.kept.entry(unit.id.order_identifier.clone()).or_default();
                of_order.add(rma.created_at, unit.amounts.paid());
            }
            if unit.is_for_exchange() {
                self.returned.exchanged.insert(unit.id.order_identifier.clone());
            }
            if let Some(facts) = self.shoppers.get_mut(&unit.id.order_identifier)
                && let Some(returned_at) = &mut facts.returned_at
                && !returned_at.contains(&rma.created_at)
            {
                returned_at.push(rma.created_at);
            }
        }
    }

    /// Adds the held units of these returns, by their identifiers, to those that the shopper keeps.
    fn add_kept(&mut self, started_at: &HashMap<String, Timestamp>) {
        let Self { orders, returned, kept, .. } = self;
        for (id, holder) in &returned.held {
            let UnitId { order_identifier, order_line_item_identifier: line, unit } = id;
            let shipped = orders.get(order_identifier).map(|it| &it.shipped_units);
            let unit = shipped.and_then(|shipped| shipped.unit(line, *unit));
            if let (Some(started_at), Some(unit)) = (started_at.get(&holder.rma_identifier), unit) {
                let of_order = kept.entry(order_identifier.clone()).or_default();
                of_order.add(*started_at, unit.amounts.paid());
            }
        }
    }

    /// The amount paid for units of an order that the shopper keeps. 0 if no rule limits it.
    pub(crate) fn kept_cents(&self, order: &str) -> i64 {
        self.kept.get(order).map_or(0, |kept| kept.paid_cents)
    }

    /// The amount paid for units of an order that the shopper kept by returns started before a time.
    pub(crate) fn kept_before(&self, order: &str, time: Timestamp) -> i64 {
        let kept = self.kept.get(order).into_iter().flat_map(|kept| &kept.units);
        kept.filter(|(started_at, _)| *started_at < time).map(|(_, paid_cents)| paid_cents).sum()
    }

    /// The unit, if the order, the line and the unit number exist.
    pub(crate) fn unit(&self, id: &UnitId) -> Option<LoadedUnit<'_>> {
        let projected = self.orders.get(&id.order_identifier)?;
        let mut lines = projected.order.items.iter();
        let line = lines.find(|line| line.identifier == id.order_line_item_identifier)?;
        let view = self.view(projected, line, id);
        let is_of_line = view.unit.is_some() || i64::from(id.unit) <= line.quantity;
        is_of_line.then_some(view)
    }

    /// The sequence number of the event with the snapshot of a unit's order, if the order is loaded.
    pub(crate) fn sequence(&self, id: &UnitId) -> Option<i64> {
        self.orders.get(&id.order_identifier).map(|it| it.sequence)
    }

    /// All units of an order, sorted by line and number.
    pub(crate) fn unit_refs(projected: &Projected) -> Vec<UnitRef> {
        let of_line = |(index, line): (usize, &OrderLine)| {
            let ordered = 1..=i32::try_from(line.quantity).unwrap_or(i32::MAX);
            let shipped = projected.shipped_units.units(&line.identifier).iter().map(|it| it.unit);
            let numbers: BTreeSet<_> = ordered.chain(shipped).collect();
            numbers.into_iter().map(move |number| UnitRef { line: index, number })
        };
        projected.order.items.iter().enumerate().flat_map(of_line).collect()
    }

    /// The unit that one of [`Self::unit_refs`] refers to.
    pub(crate) fn at(&self, order: &str, unit_ref: UnitRef) -> Option<(UnitId, LoadedUnit<'_>)> {
        let projected = self.orders.get(order)?;
        let line = projected.order.items.get(unit_ref.line)?;
        let id = unit_id(order, &line.identifier, unit_ref.number);
        let view = self.view(projected, line, &id);
        Some((id, view))
    }

    fn view<'a>(
        &'a self,
        projected: &'a Projected,
        line: &'a OrderLine,
        id: &UnitId,
    ) -> LoadedUnit<'a> {
        LoadedUnit {
            projected,
            line,
            unit: projected.shipped_units.unit(&line.identifier, id.unit),
            holder: self.returned.held.get(id),
            shopper: self.shoppers.get(&id.order_identifier).unwrap_or(ShopperFacts::NONE),
            is_order_exchanged: self.is_exchanged(&id.order_identifier),
            order_kept_cents: self.kept_cents(&id.order_identifier),
        }
    }

    /// Approximate size of these orders and held units, for `reserve_for_response`.
    pub(crate) fn response_bytes(&self) -> usize {
        let held = |(id, holder): (&UnitId, &Holder)| {
            let UnitId { order_identifier, order_line_item_identifier, .. } = id;
            let names = [order_identifier, order_line_item_identifier, &holder.rma_identifier];
            size_of::<(UnitId, Holder)>() + names.map(String::len).iter().sum::<usize>()
        };
        let orders: usize = self.orders.values().map(|it| it.bytes).sum();
        orders + self.returned.held.iter().map(held).sum::<usize>()
    }

    pub(crate) fn return_of(&self, id: &UnitId) -> Option<&str> {
        self.returned.held.get(id).map(|holder| holder.rma_identifier.as_str())
    }

    /// Whether the order has an exchange and so cannot have another.
    pub(crate) fn is_exchanged(&self, order: &str) -> bool {
        self.returned.exchanged.contains(order)
    }
}

/// Loads the facts about the shoppers of orders that the merchants' rules ask for: with one statement their returns, and
/// with one the returns by which they keep units.
pub(crate) async fn load_shoppers<'a>(
    conn: &AsyncPgConnection,
    of_merchants: impl IntoIterator<Item = (&'a Merchant, &'a mut OrderUnits)>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let mut of_merchants: Vec<_> = of_merchants.into_iter().collect();
    load_kept(conn, &mut of_merchants).await?;
    let mut counted = Vec::new();
    let mut counting = Vec::new();
    for (merchant, OrderUnits { orders, shoppers, .. }) in of_merchants {
        let policy = &merchant.settings.policy;
        let counted_days = policy.counted_days();
        if counted_days.is_none() && !policy.names_shoppers() {
            continue;
        }
        let facts = |(identifier, projected): (&String, &Projected)| {
            (identifier.clone(), ShopperFacts::new(policy, &projected.order))
        };
        shoppers.extend(orders.iter().map(facts));
        for (identifier, facts) in shoppers {
            let order = orders.get(identifier).map(|projected| &projected.order);
            let email = order.and_then(|order| order.customer.email_address());
            if let (Some(days), Some(email)) = (counted_days, email) {
                let email = email.to_lowercase();
                let since = now - TimeDelta::days(days);
                let merchant = merchant.identifier.as_str();
                counted.push(store::returns::CountedShopper { merchant, email, since });
                counting.push(facts);
            }
        }
    }
    let started_at = store::returns::started_by(conn, &counted).await?;
    for (facts, started_at) in counting.into_iter().zip(started_at) {
        facts.returned_at = Some(started_at);
    }
    Ok(())
}

async fn load_kept(
    conn: &AsyncPgConnection,
    of_merchants: &mut [(&Merchant, &mut OrderUnits)],
) -> Result<(), DatabaseError> {
    let mut returns = BTreeSet::new();
    for (merchant, order_units) in of_merchants.iter() {
        if merchant.settings.policy.limits_keeping() {
            let merchant = merchant.identifier.as_str();
            let held = order_units.returned.held.values();
            returns.extend(held.map(|holder| (merchant, holder.rma_identifier.as_str())));
        }
    }
    let kept = store::returns::kept(conn, &returns).await?;
    for (merchant, order_units) in of_merchants {
        if let Some(started_at) = kept.get(merchant.identifier.as_str()) {
            order_units.add_kept(started_at);
        }
    }
    Ok(())
}

impl<'a> LoadedUnit<'a> {
    pub(crate) fn facts(&self) -> UnitFacts<'a> {
        UnitFacts {
            order: &self.projected.order,
            line: self.line,
            is_shipped: self.unit.is_some(),
            rma_identifier: self.holder.map(|holder| holder.rma_identifier.as_str()),
            is_refunded: self.unit.is_some_and(|unit| unit.refund.is_some()),
            is_order_exchanged: self.is_order_exchanged,
            paid_amount_cents: self.unit.map_or(0, |unit| unit.amounts.paid()),
            order_kept_cents: self.order_kept_cents,
            shopper: self.shopper,
        }
    }

    /// Whether the unit is neither refunded nor in a return that is not canceled.
    pub(crate) fn is_free(&self) -> bool {
        self.unit.is_some_and(|unit| unit.refund.is_none()) && self.holder.is_none()
    }

    pub(crate) fn has_variants(&self) -> bool {
        self.line.variant_identifier.is_some()
    }

    /// The SKU, or the UPC if the order has no SKU.
    pub(crate) fn sku(&self) -> String {
        self.line.sku.clone().or_else(|| self.line.upc.clone()).unwrap_or_default()
    }

    pub(crate) fn purchased(&self) -> PurchasedUnit {
        PurchasedUnit {
            sku: self.sku(),
            upc: self.line.upc.clone(),
            title: self.line.title.clone(),
            image_url: self.line.image_url.clone().filter(|url| !url.is_empty()),
            unit_price_amount_cents: self.line.unit_price_amount_cents,
            // A unit that has not shipped has no amounts yet. It can be quoted, and is ineligible.
            amounts: self.unit.map(|unit| unit.amounts).unwrap_or_default(),
            original_order_identifier: self.projected.original_order_identifier.clone(),
        }
    }
}
