//! The chosen items together with the lines of their orders.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    draft::{Choice, Resolution, ReturnDraft, line_key},
    error::PageError,
    order::{self, ChoiceOption, Line, Order},
    page::Page,
    visit::Visit,
};

/// The chosen units of one line. They share the reason and the resolution.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) choice: Choice,
    pub(crate) line: Line,
    exchange_possible: bool,
    /// The amount paid for units of the order that the shopper keeps already.
    order_kept: i64,
}

/// Loads the orders of the choices. `None` if a choice is not possible, or none is made.
pub(crate) async fn load(
    visit: &Visit,
    draft: &ReturnDraft,
) -> Result<Option<Vec<Item>>, PageError> {
    let orders: BTreeSet<_> = draft.choices.iter().map(|choice| choice.order.as_str()).collect();
    let orders = order::load_all(visit, &Vec::from_iter(orders)).await?;
    let page = Page::new(visit, None);
    let items = draft.choices.iter().map(|choice| find(&page, &orders, choice));
    let items: Option<Vec<Item>> = items.collect();
    Ok(items.filter(|items| !items.is_empty()))
}

fn find(page: &Page, orders: &[Order], choice: &Choice) -> Option<Item> {
    let order = orders.iter().find(|order| order.identifier == choice.order)?;
    let line = order.lines.iter().find(|line| line.identifier == choice.line)?;
    page.portal.reason(&choice.reason)?;
    (choice.count <= line.free_count()).then(|| Item {
        choice: choice.clone(),
        line: line.clone(),
        exchange_possible: order.exchange_possible,
        order_kept: order.kept.unwrap_or_default(),
    })
}

impl Item {
    /// Units of a line that are refunded, without units of other orders.
    pub(crate) fn refunded(choice: Choice, line: Line) -> Self {
        Self { choice, line, exchange_possible: false, order_kept: 0 }
    }

    /// The line in the names of fields.
    pub(crate) fn key(&self) -> String {
        line_key(&self.choice.order, &self.choice.line)
    }

    /// The numbers of the units to return.
    pub(crate) fn units(&self) -> Vec<i32> {
        let count = usize::try_from(self.choice.count).unwrap_or(usize::MAX);
        self.line.free.iter().take(count).map(|unit| unit.number).collect()
    }

    /// The amount paid for the units.
    pub(crate) fn paid(&self) -> Option<i64> {
        let count = usize::try_from(self.choice.count).unwrap_or(usize::MAX);
        self.line.free.iter().take(count).map(|unit| unit.paid).sum()
    }

    /// The amount paid for each unit; nothing for a giftee.
    fn free_paid(&self) -> Vec<i64> {
        let count = usize::try_from(self.choice.count).unwrap_or(usize::MAX);
        self.line.free.iter().take(count).filter_map(|unit| unit.paid).collect()
    }

    /// The resolutions that the shopper can choose. A gift card needs an exchange order, too.
    pub(crate) fn resolutions(&self, page: &Page, is_gift: bool) -> Vec<Resolution> {
        let reason = page.portal.reason(&self.choice.reason);
        let is_possible = |resolution: &Resolution| match resolution {
            Resolution::Refund => !is_gift,
            Resolution::Exchange => {
                self.exchange_possible
                    && self.line.exchange_offered
                    && reason.is_some_and(|reason| reason.offers_exchange)
            }
            Resolution::GiftCard => self.exchange_possible && page.portal.gift_card.is_some(),
        };
        let is_offered = |resolution: &Resolution| {
            let Some(options) = self.line.options(&self.choice.reason) else { return true };
            let mut own = options.iter().filter(|it| it.outcome == resolution.value());
            own.any(|option| option.ineligible.is_none())
        };
        Resolution::ALL.into_iter().filter(is_possible).filter(is_offered).collect()
    }

    /// The merchant's rules about the chosen reason and resolution with a method. `None` if there are none.
    pub(crate) fn option(&self, method: &str) -> Option<&ChoiceOption> {
        let outcome = self.choice.resolution?.value();
        let mut options = self.line.options(&self.choice.reason)?.iter();
        options.find(|it| it.outcome == outcome && it.method == method)
    }

    /// The sum of the items up to which the shopper can keep this one with a method. Units that the shopper keeps already
    /// count for every order of the items; those of the own order are subtracted already. `None` if no rule limits it.
    pub(crate) fn keep_up_to(&self, method: &str, items: &[Self]) -> Option<i64> {
        let limit = self.option(method)?.keep_up_to_cents?;
        let others = items.iter().filter(|item| item.line.order != self.line.order);
        let kept: BTreeMap<_, _> =
            others.map(|item| (item.line.order.as_str(), item.order_kept)).collect();
        Some(limit - kept.into_values().sum::<i64>())
    }

    /// The bonus for a gift card that the merchant's rules give.
    pub(crate) fn rule_bonus(&self) -> Option<i64> {
        let mut options = self.line.options(&self.choice.reason)?.iter();
        let percent = options.find(|it| it.outcome == "gift_card")?.bonus_percent?;
        Some(self.free_paid().iter().map(|paid| paid * percent / 100).sum())
    }
}

/// The bonus of a gift card for an order in this currency.
pub(crate) fn bonus(page: &Page, currency: &str) -> i64 {
    let card = page.portal.gift_card.as_ref().filter(|_| page.portal.currency == currency);
    card.map_or(0, |card| card.bonus_credit_amount_cents)
}

#[cfg(test)]
pub(crate) mod tests {
    use actix_web::test::TestRequest;
    use serde_json::json;

    use super::*;
    use crate::{
        merchant::Portal,
        order::tests::{order, unit},
    };

    pub(crate) fn page() -> Page {
        let mut page = Page::without_merchant(&TestRequest::get().to_http_request());
        let portal = json!({
            "merchant": "acme", "version": 1, "name": "Acme", "currency": "EUR",
            "reasons": [
                { "code": "SMALL", "label": "Too small", "offers_exchange": true },
                { "code": "OTHER", "label": "Other", "offers_exchange": false },
            ],
            "methods": [
                { "method": "mail-back", "shipping_cost_cents": 495 },
                { "method": "express-returns", "shipping_cost_cents": 0 },
            ],
            "gift_card": { "sku": "GC", "bonus_credit_amount_cents": 500 },
            "free_exchange_shipping": true,
            "rule_texts": { "sale": { "en": "Sale items stay yours." }, "bulky": { "en": "Large items cost more." } },
        });
        page.portal = serde_json::from_value::<Portal>(portal).unwrap().into();
        page
    }

    pub(crate) fn item(choice: &str) -> Item {
        item_of(order(&[unit("1", 1), unit("1", 2), unit("2", 1)]), choice)
    }

    pub(crate) fn item_of(order: Order, choice: &str) -> Item {
        find(&page(), &[order], &Choice::parse(choice).unwrap()).unwrap()
    }

    #[test]
    fn a_choice_that_does_not_fit_the_order_is_none() {
        let orders = [order(&[unit("1", 1), unit("1", 2)])];
        let is_found =
            |choice: &str| find(&page(), &orders, &Choice::parse(choice).unwrap()).is_some();
        assert!(is_found("A-1~1~2~SMALL"));
        for bad in ["A-1~1~3~SMALL", "A-1~2~1~SMALL", "A-2~1~1~SMALL", "A-1~1~1~OLD", "A-1~1~1"] {
            assert!(!is_found(bad), "{bad}");
        }
    }

    #[test]
    fn units_and_amounts_follow_the_count() {
        let item = item("A-1~1~2~SMALL");
        assert_eq!((item.units(), item.paid()), (vec![1, 2], Some(9990)));
    }

    #[test]
    fn the_reason_and_the_order_decide_the_resolutions() {
        let page = page();
        let mut item = item("A-1~1~1~SMALL");
        let values = |item: &Item, is_gift| -> Vec<_> {
            item.resolutions(&page, is_gift).into_iter().map(Resolution::value).collect()
        };
        assert_eq!(values(&item, false), ["refund", "exchange", "gift_card"]);
        assert_eq!(values(&item, true), ["exchange", "gift_card"]);
        item.choice.reason = "OTHER".to_owned();
        assert_eq!(values(&item, false), ["refund", "gift_card"]);
        item.exchange_possible = false;
        assert_eq!(values(&item, false), ["refund"]);
        assert!(values(&item, true).is_empty());
    }
}
