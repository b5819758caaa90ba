//! The events about confirmed exchanges, which the exchange service consumes.

use std::collections::BTreeMap;

use domain::merchant::{Merchant, ReturnPolicy};
use domain::order::{Customer, Order};
use domain::returns::{
    ConfirmedUnit, GiftCardOffer, Replacement, Resolution, ReturnConfirmed, Rma, RmaUnit,
};
use platform::Timestamp;

/// Events for the exchange service, one for each order with exchanged units. `order` finds the orders of the return.
pub(crate) fn confirmations<'a>(
    merchant: &Merchant,
    rma: &Rma,
    order: impl Fn(&str) -> Option<&'a Order>,
    now: Timestamp,
) -> Vec<ReturnConfirmed> {
    let mut by_order: BTreeMap<&str, Vec<&RmaUnit>> = BTreeMap::new();
    for unit in rma.active_units() {
        by_order.entry(&unit.id.order_identifier).or_default().push(unit);
    }
    let confirmation = |(order_identifier, units): (&str, Vec<&RmaUnit>)| {
        let order = order(order_identifier)?;
        let units = units.into_iter().filter_map(|unit| confirmed_unit(merchant, unit, order));
        let units: Vec<_> = units.collect();
        let has_card = units.iter().any(|it| it.replacement == Replacement::GiftCard);
        let returns = merchant.settings.returns_in(order.currency.code());
        (!units.is_empty()).then(|| ReturnConfirmed {
            merchant: merchant.identifier.clone(),
            rma_identifier: rma.rma_identifier.clone(),
            original_order_id: order.identifier.clone(),
            currency: order.currency,
            is_gift: rma.giftee_email.is_some(),
            customer: customer(rma, order),
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
/// by a rule. The bonuses are those of the request, which the shopper was told.
fn gift_card(returns: &ReturnPolicy, rma: &Rma, order: &str) -> Option<GiftCardOffer> {
    let offer = returns.gift_card.clone()?;
    let is_for_card = |unit: &&RmaUnit| {
        unit.id.order_identifier == order && unit.resolution == Resolution::GiftCard
    };
    let units = || rma.active_units().filter(is_for_card);
    // Returns of earlier versions have no bonus of their own.
    let of_settings = rma.gift_card_bonus_amount_cents.unwrap_or(offer.bonus_credit_amount_cents);
    let by_settings = units().any(RmaUnit::has_bonus_of_settings).then_some(of_settings);
    let by_rules = units().map(|unit| unit.bonus_amount_cents);
    let bonus_credit_amount_cents = by_rules.chain([by_settings]).flatten().sum();
    Some(GiftCardOffer { bonus_credit_amount_cents, ..offer })
}

/// The customer of the exchange order. A giftee has only an e-mail address.
fn customer(rma: &Rma, order: &Order) -> Customer {
    let Some(email) = &rma.giftee_email else { return order.customer.clone() };
    Customer {
        identifier: email.clone(),
        first_name: None,
        last_name: None,
        email: Some(email.clone()),
        phone: None,
    }
}

/// The unit as its order describes it. A return that was approved after a review may have a unit whose line the merchant
/// removed meanwhile: it then has the values from when the return was requested.
fn confirmed_unit(merchant: &Merchant, unit: &RmaUnit, order: &Order) -> Option<ConfirmedUnit> {
    let replacement = unit.resolution.replacement()?;
    let name = &unit.id.order_line_item_identifier;
    let line = order.items.iter().find(|line| line.identifier == *name);
    let of_line = line.and_then(|line| line.concept.as_ref());
    let concepts = [of_line, order.concept.as_ref(), merchant.settings.concept.as_ref()];
    let concept = concepts.into_iter().flatten().find(|concept| !concept.is_empty());
    Some(ConfirmedUnit {
        id: unit.id.clone(),
        sku: unit.sku.clone(),
        title: line.map_or(&unit.title, |line| &line.title).clone(),
        product_identifier: line.map_or(&unit.sku, |line| &line.product_identifier).clone(),
        variant_identifier: line.and_then(|line| line.variant_identifier.clone()),
        concept: concept.cloned(),
        unit_price_amount_cents: line
            .map_or(unit.amounts.product_amount_cents, |line| line.unit_price_amount_cents),
        product_amount_cents: unit.amounts.product_amount_cents,
        discount_amount_cents: unit.amounts.discount_amount_cents,
        tax_amount_cents: unit.amounts.tax_amount_cents,
        bonus_amount_cents: unit.bonus_amount_cents.unwrap_or_default(),
        replacement,
    })
}
