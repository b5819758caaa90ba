//! The units of a return as rows: equal units of a line are one row.

use domain::returns::ExchangeStatus;

use super::model::{Return, Unit};
use crate::{draft::Resolution, page::Page};

#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) count: usize,
    unit: Unit,
    /// The sums over the units; absent for a gift.
    paid: Option<i64>,
    refund: Option<i64>,
    currency: String,
    /// Whether the return shipping is subtracted from the refunds.
    costs_shipping: bool,
    /// Whether the shop looks at the return before it starts.
    is_in_review: bool,
    is_declined: bool,
}

/// The rows of a return, in the order of its units.
pub(crate) fn items(rma: &Return) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for unit in &rma.units {
        let amounts = unit.refund_financials;
        let paid = amounts.map(|amounts| amounts.estimated_refund_amount_cents);
        let refund = amounts.map(|amounts| amounts.shopper_refund_amount_cents);
        match items.iter_mut().find(|item| is_alike(&item.unit, unit)) {
            Some(item) => {
                item.count += 1;
                item.paid = item.paid.zip(paid).map(|(sum, paid)| sum + paid);
                item.refund = item.refund.zip(refund).map(|(sum, refund)| sum + refund);
            }
            None => items.push(Item {
                count: 1,
                unit: unit.clone(),
                paid,
                refund,
                currency: rma.currency.clone(),
                costs_shipping: rma.return_shipping_cost_cents.is_some_and(|cents| cents > 0),
                is_in_review: rma.is_in_review(),
                is_declined: rma.is_declined(),
            }),
        }
    }
    items
}

/// Whether a page shows the same about both units, apart from the amounts.
fn is_alike(first: &Unit, second: &Unit) -> bool {
    let line = |unit: &Unit| {
        (unit.order_identifier.clone(), unit.order_line_item_identifier.clone(), unit.title.clone())
    };
    let variant = |unit: &Unit| unit.variant.as_ref().map(|variant| variant.title.clone());
    let state = |unit: &Unit| {
        (unit.resolution(), unit.exchange_status, unit.is_refunded, unit.canceled_at.is_some())
    };
    line(first) == line(second)
        && variant(first) == variant(second)
        && state(first) == state(second)
        && first.exchange_order_identifier == second.exchange_order_identifier
}

impl Item {
    /// The title, with the number of units if there are several.
    pub(crate) fn title(&self, page: &Page) -> String {
        if self.count == 1 {
            return self.unit.title.clone();
        }
        page.t2("item-count", "count", self.count, "title", &self.unit.title)
    }

    pub(crate) fn is_canceled(&self) -> bool {
        self.unit.canceled_at.is_some()
    }

    pub(crate) fn image<'a>(&'a self, page: &'a Page) -> Option<&'a str> {
        page.portal.image(self.unit.image_url.as_deref())
    }

    pub(crate) fn order(&self) -> &str {
        &self.unit.order_identifier
    }

    pub(crate) fn paid(&self, page: &Page) -> Option<String> {
        let paid = self.paid?;
        Some(page.t1("item-paid", "amount", page.money(&paid, &self.currency)))
    }

    /// The sentence about the resolution.
    pub(crate) fn outcome(&self, page: &Page) -> String {
        let unit = &self.unit;
        if unit.canceled_at.is_some() {
            return page.t(if self.is_declined { "item-declined" } else { "item-canceled" });
        }
        let is_failed = unit.exchange_status == Some(ExchangeStatus::Failed);
        let amount = self.refund.map(|refund| page.money(&refund, &self.currency));
        match (unit.resolution(), amount) {
            (Resolution::Refund, Some(amount)) if unit.is_refunded && self.costs_shipping => {
                page.t1("item-refunded-before-shipping", "amount", amount)
            }
            (Resolution::Refund, Some(amount)) if unit.is_refunded => {
                page.t1("item-refunded", "amount", amount)
            }
            (Resolution::Refund, Some(amount)) if is_failed => {
                page.t1("item-exchange-failed", "amount", amount)
            }
            (Resolution::Refund, Some(amount)) => page.t1("item-refund", "amount", amount),
            (Resolution::Refund, None) if is_failed => page.t("item-exchange-failed-gift"),
            (Resolution::Refund, None) => page.t("item-refund-gift"),
            (Resolution::Exchange, _) => {
                let title = unit.variant.as_ref().map_or("", |variant| variant.title.as_str());
                let text = page.t1("item-exchange", "title", title);
                let Some(cents) = unit.price_difference() else { return text };
                format!("{text}. {}", page.price_difference(cents, &self.currency))
            }
            (Resolution::GiftCard, _) => page.t("item-gift-card"),
        }
    }

    /// The sentence about the order of the replacement, if there is a replacement.
    pub(crate) fn replacement(&self, page: &Page) -> Option<String> {
        let unit = &self.unit;
        if unit.canceled_at.is_some() || self.is_in_review {
            return None;
        }
        let (placed, waiting) = match unit.resolution() {
            Resolution::Refund => return None,
            Resolution::Exchange => ("item-exchange-order", "item-exchange-waits"),
            Resolution::GiftCard => ("item-gift-card-order", "item-gift-card-waits"),
        };
        Some(match &unit.exchange_order_identifier {
            Some(order) => page.t1(placed, "order", order),
            None => page.t(waiting),
        })
    }
}

/// The amounts of a return; absent for a gift and for a canceled return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Amounts {
    pub(super) refund: i64,
    pub(super) shipping: i64,
}

impl Amounts {
    pub(super) fn of(rma: &Return) -> Option<Self> {
        let shipping = rma.return_shipping_cost_cents?;
        rma.active_units().next()?;
        let refunds = rma.active_units().map(|unit| unit.refund_financials);
        let refunds = refunds.map(|amounts| Some(amounts?.shopper_refund_amount_cents));
        Some(Self { refund: refunds.sum::<Option<i64>>()?, shipping })
    }

    /// The return shipping cost as it changes the total.
    pub(super) fn deducted(&self) -> i64 {
        -self.shipping
    }

    /// The refund after the return shipping cost. A refund that does not cover the cost has none.
    pub(super) fn total(&self) -> Option<i64> {
        (self.refund >= self.shipping).then_some(self.refund - self.shipping)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use serde_json::json;

    use super::super::model::tests::rma;
    use super::*;

    fn page() -> Page {
        Page::without_merchant(&TestRequest::get().to_http_request())
    }

    #[test]
    fn equal_units_are_one_row() {
        let return_ = rma(&[
            json!({}),
            json!({}),
            json!({ "canceled_at": "2026-11-16T10:00:00Z" }),
            json!({ "resolution": "exchange", "variant": { "title": "Tee, M" } }),
        ]);
        let page = page();
        let items = items(&return_);
        let shown: Vec<_> =
            items.iter().map(|item| (item.title(&page), item.outcome(&page))).collect();
        assert_eq!(shown[0].0, "2 × Tee, L");
        assert!(shown[0].1.contains("€43.30"), "{shown:?}");
        assert_eq!(items.iter().map(|item| item.count).collect::<Vec<_>>(), [2, 1, 1]);
        assert!(shown[2].1.contains("Tee, M"), "{shown:?}");
        let amounts = Amounts::of(&return_).unwrap();
        assert_eq!((amounts.refund, amounts.total()), (3 * 2165, Some(3 * 2165 - 500)));
    }

    #[test]
    fn a_gift_has_no_amounts() {
        let mut gift = rma(&[json!({ "resolution": "gift_card", "refund_financials": null })]);
        gift.return_shipping_cost_cents = None;
        let page = page();
        let items = items(&gift);
        assert_eq!((items[0].paid(&page), Amounts::of(&gift)), (None, None));
        assert!(!items[0].outcome(&page).contains('€'));
        assert_eq!(items[0].replacement(&page), Some(page.t("item-gift-card-waits")));
    }

    #[test]
    fn a_canceled_return_costs_nothing() {
        let canceled = json!({ "canceled_at": "2026-11-16T10:00:00Z" });
        assert!(Amounts::of(&rma(&[canceled.clone(), json!({})])).is_some());
        assert_eq!(Amounts::of(&rma(&[canceled])), None);
    }

    #[test]
    fn an_exchange_shows_the_difference_in_price() {
        let exchange = |price: i64| {
            json!({
                "resolution": "exchange", "product_amount_cents": 2000,
                "variant": { "title": "Tee, M", "unit_price_amount_cents": price },
            })
        };
        let outcome = |price| items(&rma(&[exchange(price)]))[0].outcome(&page());
        assert!(outcome(3500).ends_with("It costs €15.00 more than your item."));
        assert!(outcome(2000).ends_with("It has the same price."));
        let unknown = json!({ "resolution": "exchange", "variant": { "title": "Tee, M" } });
        assert_eq!(items(&rma(&[unknown]))[0].outcome(&page()), "Exchange for Tee, M");
    }

    #[test]
    fn a_refund_names_the_shipping_that_is_subtracted() {
        let refunded = rma(&[json!({ "is_refunded": true })]);
        let text = items(&refunded)[0].outcome(&page());
        assert_eq!(text, "€21.65 refunded, before return shipping");
        let free = Return { return_shipping_cost_cents: Some(0), ..refunded };
        assert_eq!(items(&free)[0].outcome(&page()), "€21.65 refunded");
    }

    #[test]
    fn nothing_is_prepared_while_the_shop_looks_at_the_return() {
        use super::super::model::tests::reviewed;
        let page = page();
        let waiting = items(&reviewed("REQUESTED", &json!({})));
        assert_eq!(waiting[0].replacement(&page), None);
        let mut declined = reviewed("DECLINED", &json!({ "decision": "decline" }));
        declined.units[0].canceled_at = Some(declined.created_at);
        assert_eq!(items(&declined)[0].outcome(&page), page.t("item-declined"));
    }

    #[test]
    fn a_failed_exchange_becomes_a_refund() {
        let failed = json!({ "resolution": "exchange", "exchange_status": "failed" });
        let page = page();
        let items = items(&rma(&[failed]));
        assert_eq!(items[0].outcome(&page), page.t1("item-exchange-failed", "amount", "€21.65"));
        assert_eq!(items[0].replacement(&page), None);
    }
}
