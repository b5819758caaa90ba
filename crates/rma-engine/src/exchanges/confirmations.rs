//! The events about confirmed exchanges, which the exchange service consumes.

use std::collections::BTreeMap;

use domain::merchant::{Merchant, ReturnPolicy};
use domain::order::{Customer, Order};
use domain::returns::{
    ConfirmedUnit, GiftCardOffer, Replacement, Resolution, ReturnConfirmed, ReturnRequest, Rma,
    RmaUnit,
};
use platform::Timestamp;

use crate::orders::units::OrderUnits;

/// Events for the exchange service, one for each order with exchanged units.
pub(crate) fn confirmations(
    merchant: &Merchant,
    request: &ReturnRequest,
    rma: &Rma,
    order_units: &OrderUnits,
    now: Timestamp,
) -> Vec<ReturnConfirmed> {
    let mut by_order: BTreeMap<&str, Vec<ConfirmedUnit>> = BTreeMap::new();
    for unit in &rma.units {
        let confirmed = confirmed_unit(merchant, unit, order_units);
        by_order.entry(&unit.id.order_identifier).or_default().extend(confirmed);
    }
    let confirmation = |(order, units): (&str, Vec<ConfirmedUnit>)| {
        let order = &order_units.orders.get(order)?.order;
        let has_card = units.iter().any(|it| it.replacement == Replacement::GiftCard);
        let returns = merchant.settings.returns_in(order.currency.code());
        (!units.is_empty()).then(|| ReturnConfirmed {
            merchant: merchant.identifier.clone(),
            rma_identifier: rma.rma_identifier.clone(),
            original_order_id: order.identifier.clone(),
            currency: order.currency,
            is_gift: request.gift_refund_only,
            customer: customer(request, order),
            shipping_address: order.shipping_address.clone(),
            billing_address: order.billing_address.clone(),
            units,
            gift_card: has_card.then(|| gift_card(&returns, rma, &order.identifier)).flatten(),
            confirmed_at: now,
        })
    };
    by_order.into_iter().filter_map(confirmation).collect()
}

/// The gift card of an order. Its bonus is the sum of those that rules give, and that of the settings if a unit has none
/// by a rule.
fn gift_card(returns: &ReturnPolicy, rma: &Rma, order: &str) -> Option<GiftCardOffer> {
    let offer = returns.gift_card.clone()?;
    let is_for_card = |unit: &&RmaUnit| {
        unit.id.order_identifier == order && unit.resolution == Resolution::GiftCard
    };
    let by_rule = || rma.units.iter().filter(is_for_card).map(|unit| unit.bonus_amount_cents);
    let by_settings =
        by_rule().any(|bonus| bonus.is_none()).then_some(offer.bonus_credit_amount_cents);
    let bonus_credit_amount_cents = by_rule().chain([by_settings]).flatten().sum();
    Some(GiftCardOffer { bonus_credit_amount_cents, ..offer })
}

/// The customer of the exchange order. A giftee has only an e-mail address.
fn customer(request: &ReturnRequest, order: &Order) -> Customer {
    let Some(email) = &request.giftee_email else { return order.customer.clone() };
    Customer {
        identifier: email.clone(),
        first_name: None,
        last_name: None,
        email: Some(email.clone()),
        phone: None,
    }
}

fn confirmed_unit(
    merchant: &Merchant,
    unit: &RmaUnit,
    order_units: &OrderUnits,
) -> Option<ConfirmedUnit> {
    let replacement = unit.resolution.replacement()?;
    let view = order_units.unit(&unit.id)?;
    let line = view.line;
    let order = &view.projected.order;
    let concepts = [&line.concept, &order.concept, &merchant.settings.concept];
    let concept = concepts.into_iter().flatten().find(|concept| !concept.is_empty());
    Some(ConfirmedUnit {
        id: unit.id.clone(),
        sku: unit.sku.clone(),
        title: line.title.clone(),
        product_identifier: line.product_identifier.clone(),
        variant_identifier: line.variant_identifier.clone(),
        concept: concept.cloned(),
        unit_price_amount_cents: line.unit_price_amount_cents,
        product_amount_cents: unit.amounts.product_amount_cents,
        discount_amount_cents: unit.amounts.discount_amount_cents,
        tax_amount_cents: unit.amounts.tax_amount_cents,
        bonus_amount_cents: unit.bonus_amount_cents.unwrap_or_default(),
        replacement,
    })
}
