//! The amounts of a return and its next steps, as the page shows them.

use super::{
    quote::Quote,
    request::{Request, RequestItem},
};
use crate::{method, page::Page};

#[derive(Debug)]
pub(super) struct Summary {
    pub(super) items: Vec<ItemSummary>,
    /// Label and amount; the last is the sum. Empty for a giftee and for a return that is not possible.
    pub(super) amounts: Vec<(String, String)>,
    pub(super) method: String,
    /// The merchant's words about the shipping cost.
    pub(super) cost_note: Option<String>,
    /// The steps after the confirmation.
    pub(super) next: Vec<String>,
    pub(super) is_possible: bool,
}

#[derive(Debug)]
pub(super) struct ItemSummary {
    pub(super) title: String,
    pub(super) count: usize,
    pub(super) reason: String,
    /// The resolution in words.
    pub(super) result: String,
}

impl Summary {
    pub(super) fn new(page: &Page, request: &Request, quote: &Quote) -> Self {
        // A giftee sees no amounts, and an impossible return has none.
        let is_shown = quote.possible && !request.is_gift;
        Self {
            items: request.items.iter().map(|item| summary(page, item, quote)).collect(),
            amounts: if is_shown { amounts(page, request, quote) } else { Vec::new() },
            method: page.t(method::text_id(&quote.return_method)),
            cost_note: page
                .portal
                .rule_text(quote.cost_rule.as_deref(), page.language)
                .filter(|_| is_shown)
                .map(str::to_owned),
            next: next(page, request, quote.review_rule.is_some()),
            is_possible: quote.possible,
        }
    }
}

fn summary(page: &Page, item: &RequestItem, quote: &Quote) -> ItemSummary {
    let first = quote.line(&item.order, &item.line).next();
    let reason = page.portal.reason(&item.reason);
    ItemSummary {
        title: first.map(|unit| unit.title.clone()).unwrap_or_default(),
        count: item.units.len(),
        reason: reason.map_or(&*item.reason, |reason| reason.label(page.language)).to_owned(),
        result: result(page, item, quote),
    }
}

fn result(page: &Page, item: &RequestItem, quote: &Quote) -> String {
    let value = value(item, quote).map(|cents| page.money(&cents, &quote.currency));
    match (&item.variant, item.resolution.as_str(), value) {
        (Some(variant), ..) => {
            let text = page.t1("check-exchange", "title", &variant.title);
            let Some(cents) = difference(item) else { return text };
            let cents = cents.saturating_sub(bonus_of_unit(item, quote));
            format!("{text} {}", page.price_difference(cents, &quote.currency))
        }
        (None, "gift_card", Some(value)) => page.t1("check-gift-card", "amount", value),
        (None, "gift_card", None) => page.t("check-gift-card-gift"),
        (None, _, value) => page.t1("check-refund", "amount", value.unwrap_or_default()),
    }
}

/// The price of the variant, less that of the item; nothing for a giftee, and without an exchange.
fn difference(item: &RequestItem) -> Option<i64> {
    let old = item.unit_price?;
    let variant = item.variant.as_ref()?;
    Some(variant.unit_price_amount_cents.unwrap_or(old).saturating_sub(old))
}

/// The discount on a variant that the merchant's rules give for each unit. The quote names it only where it is given.
fn bonus_of_unit(item: &RequestItem, quote: &Quote) -> i64 {
    let unit = quote.line(&item.order, &item.line).next();
    unit.and_then(|unit| unit.bonus_amount_cents).unwrap_or_default()
}

/// The amount that was paid for the units.
fn value(item: &RequestItem, quote: &Quote) -> Option<i64> {
    let units = quote.line(&item.order, &item.line);
    units.map(|unit| unit.refund_financials.estimated_refund_amount_cents).sum()
}

/// The amounts with their labels; the last is the sum.
pub(crate) fn amounts(page: &Page, request: &Request, quote: &Quote) -> Vec<(String, String)> {
    let currency = &quote.currency;
    let money = |cents: i64| page.money(&cents, currency);
    let refund = quote.shopper_refund_amount_cents.unwrap_or_default();
    let cost = quote.return_shipping_cost_cents.unwrap_or_default();
    let mut amounts = Vec::new();
    let cards: Vec<_> = request.items.iter().filter(|it| it.resolution == "gift_card").collect();
    if !cards.is_empty() {
        let value: i64 = cards.iter().filter_map(|item| value(item, quote)).sum();
        amounts.push((page.t("check-card-value"), money(value)));
        let bonus = quote.card_bonus();
        if bonus > 0 {
            amounts.push((page.t("check-card-bonus"), money(bonus)));
        }
    }
    amounts.push((page.t("check-items-refund"), money(refund)));
    amounts.push((page.t("check-shipping"), money(-cost)));
    amounts.push(if refund >= cost {
        (page.t("check-total"), money(refund - cost))
    } else {
        (page.t("check-to-pay"), money(cost - refund))
    });
    amounts
}

/// The steps after the confirmation: that of the shop if it looks at the return first, that of the method, and those of
/// the resolutions.
fn next(page: &Page, request: &Request, is_reviewed: bool) -> Vec<String> {
    let method = method::text_id(&request.method);
    let has = |kind: &str| request.items.iter().any(|item| item.resolution == kind);
    let is_kept = request.method == "customer-keep";
    let mut steps = Vec::new();
    if is_reviewed && is_kept {
        steps.push(page.t("check-next-review"));
    } else if is_reviewed {
        steps.push(page.t("check-next-review") + " " + &page.t("check-next-review-wait"));
    }
    steps.push(page.t(&format!("{method}-next")));
    let refund = match (is_kept, is_reviewed) {
        (false, _) => "check-next-refund",
        (true, false) => "check-next-refund-keep",
        (true, true) => "check-next-refund-keep-accepted",
    };
    let [exchange, card] = if is_reviewed {
        ["check-next-exchange-accepted", "check-next-gift-card-accepted"]
    } else {
        ["check-next-exchange", "check-next-gift-card"]
    };
    let resolutions = [("exchange", exchange), ("gift_card", card), ("refund", refund)];
    steps.extend(resolutions.iter().filter(|(kind, _)| has(kind)).map(|(_, id)| page.t(id)));
    if request.items.iter().any(|item| difference(item).is_some_and(|cents| cents != 0)) {
        steps.push(page.t("check-next-difference"));
    }
    if !is_reviewed && (has("exchange") || has("gift_card")) {
        steps.push(page.t("check-next-not-cancelable"));
    }
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{basket::tests::page, check::request::tests::request};

    fn quote(shopper: i64, cost: i64) -> Value {
        let unit = |number: i32| {
            json!({
                "order_identifier": "A-1", "order_line_item_identifier": "1", "unit": number,
                "title": "Shirt", "sku": "S-R",
                "refund_financials": { "estimated_refund_amount_cents": 4995, "shopper_refund_amount_cents": 4995 },
            })
        };
        json!({
            "quote": "token", "possible": true, "return_method": "mail-back", "currency": "EUR",
            "return_shipping_cost_cents": cost, "shopper_refund_amount_cents": shopper,
            "units": [unit(1), unit(3)],
        })
    }

    fn shown(request: &Request, quote: Value) -> Summary {
        Summary::new(&page(), request, &serde_json::from_value(quote).unwrap())
    }

    fn texts(summary: &Summary) -> Vec<&str> {
        summary.amounts.iter().map(|(_, amount)| amount.as_str()).collect()
    }

    #[test]
    fn every_amount_is_shown_to_the_cent() {
        let summary = shown(&request("refund", None), quote(9990, 495));
        assert_eq!(texts(&summary), ["€99.90", "-€4.95", "€94.95"]);
        let item = summary.items.first().unwrap();
        assert_eq!((item.count, item.reason.as_str()), (2, "Too small"));
        assert!(item.result.contains("€99.90"), "{}", item.result);
    }

    #[test]
    fn a_gift_card_has_the_bonus_of_the_quote() {
        let mut quote = quote(0, 0);
        quote["gift_card_bonus_amount_cents"] = json!(500);
        let summary = shown(&request("gift_card", None), quote);
        assert_eq!(texts(&summary), ["€99.90", "€5.00", "€0.00", "€0.00", "€0.00"]);
    }

    #[test]
    fn rules_give_a_bonus_for_each_unit() {
        let mut quote = quote(0, 0);
        quote["units"][0]["resolution"] = json!("gift_card");
        quote["units"][0]["bonus_amount_cents"] = json!(400);
        quote["gift_card_bonus_amount_cents"] = json!(500);
        quote["cost_rule"] = json!("bulky");
        let summary = shown(&request("gift_card", None), quote);
        // The other unit has the bonus of the settings.
        assert_eq!(texts(&summary), ["€99.90", "€9.00", "€0.00", "€0.00", "€0.00"]);
        assert_eq!(summary.cost_note.as_deref(), Some("Large items cost more."));
    }

    #[test]
    fn shipping_of_an_exchange_is_to_pay() {
        let summary = shown(&request("exchange", Some(5500)), quote(0, 495));
        assert_eq!(
            summary.amounts.last().unwrap(),
            &(page().t("check-to-pay"), "€4.95".to_owned())
        );
        assert!(summary.items.first().unwrap().result.contains("€5.00"));
    }

    #[test]
    fn a_variant_costs_less_by_the_bonus_of_the_quote() {
        let mut quote = quote(0, 0);
        for unit in quote["units"].as_array_mut().unwrap() {
            unit["bonus_amount_cents"] = json!(300);
        }
        let summary = shown(&request("exchange", Some(5500)), quote);
        assert!(summary.items.first().unwrap().result.contains("€2.00"));
    }

    #[test]
    fn only_an_uneven_exchange_has_a_difference_to_settle() {
        let settled = page().t("check-next-difference");
        let next = |price| shown(&request("exchange", price), quote(0, 0)).next;
        assert!(next(Some(5500)).contains(&settled) && next(Some(4500)).contains(&settled));
        assert!(!next(Some(5000)).contains(&settled) && !next(None).contains(&settled));
    }

    #[test]
    fn a_return_with_a_replacement_says_that_it_cannot_be_canceled() {
        let text = page().t("check-next-not-cancelable");
        let next = |resolution| shown(&request(resolution, None), quote(0, 0)).next;
        assert!(next("exchange").contains(&text) && next("gift_card").contains(&text));
        assert!(!next("refund").contains(&text));
    }

    #[test]
    fn a_return_that_the_shop_looks_at_first_says_so() {
        let mut quote = quote(0, 0);
        quote["review_rule"] = json!("often");
        let kept = Request { method: "customer-keep".to_owned(), ..request("refund", None) };
        assert_eq!(shown(&kept, quote.clone()).next[0], page().t("check-next-review"));
        let steps = shown(&request("exchange", None), quote).next;
        assert!(steps[0].ends_with(&page().t("check-next-review-wait")), "{steps:?}");
        assert_eq!(steps[2], page().t("check-next-exchange-accepted"));
        assert!(!steps.contains(&page().t("check-next-not-cancelable")), "{steps:?}");
    }

    #[test]
    fn a_giftee_sees_no_amounts() {
        let request = Request { is_gift: true, ..request("exchange", None) };
        let mut quote = quote(0, 0);
        platform::shopper_proof::remove_amounts(&mut quote);
        let summary = shown(&request, quote);
        assert!(!format!("{summary:?}").contains('€'), "{summary:?}");
    }
}
