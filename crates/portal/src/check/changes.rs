//! The differences between the quote that the shopper saw and the current one.

use std::collections::{BTreeMap, BTreeSet};

use pages::api::ErrorBody;
use serde::Deserialize;
use serde_json::Value;

use super::quote::{Quote, QuotedUnit};
use crate::{draft::ReturnDraft, page::Page, refusal};

/// The response of rma-engine to a return whose terms have changed.
#[derive(Debug, Deserialize)]
pub(crate) struct Conflict {
    #[serde(default)]
    pub(crate) changes: Vec<Change>,
    pub(crate) quote: Quote,
}

impl Conflict {
    /// `None` for another response.
    pub(crate) fn of(body: &ErrorBody) -> Option<Self> {
        serde_json::from_value(Value::Object(body.rest.clone())).ok()
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Change {
    unit: Option<ChangedUnit>,
    field: String,
    #[serde(default)]
    quoted: Value,
    #[serde(default)]
    current: Value,
}

#[derive(Debug, Deserialize)]
struct ChangedUnit {
    order_identifier: String,
    order_line_item_identifier: String,
}

/// The changes in words.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Sentences with the old and the new amount.
    pub(crate) amounts: Vec<String>,
    /// Sentences about the items that cannot be returned now.
    pub(crate) refused: Vec<String>,
}

impl Changed {
    pub(crate) fn new(page: &Page, changes: &[Change], quote: &Quote) -> Self {
        let costs = changes.iter().filter(|it| it.field == "return_shipping_cost_cents");
        let costs = costs.map(|change| {
            let [old, new] = amounts(page, quote, &change.quoted, &change.current);
            page.t2("check-changed-shipping", "old", old, "new", new)
        });
        let amounts = costs
            .chain(refunds(page, changes, quote))
            .chain(card_bonus(page, changes, quote))
            .chain(price_differences(page, changes, quote));
        Self { amounts: amounts.collect(), refused: refused(page, quote) }
    }
}

fn amounts(page: &Page, quote: &Quote, old: &Value, new: &Value) -> [String; 2] {
    [old, new].map(|value| page.money(&value.as_i64().unwrap_or_default(), &quote.currency))
}

/// The refunds of items: the sums over the changed units of each line.
fn refunds(page: &Page, changes: &[Change], quote: &Quote) -> Vec<String> {
    let mut sums: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    for change in changes.iter().filter(|change| change.field == "refund_amount_cents") {
        let (old, new) = sums.entry(title(change, quote)).or_default();
        *old += change.quoted.as_i64().unwrap_or_default();
        *new += change.current.as_i64().unwrap_or_default();
    }
    let sentence = |(title, (old, new)): (String, (i64, i64))| {
        let [old, new] = amounts(page, quote, &old.into(), &new.into());
        let change = page.t2("check-changed-amount", "old", old, "new", new);
        page.t2("check-changed-item", "title", title, "change", change)
    };
    sums.into_iter().map(sentence).collect()
}

/// The bonus of all gift cards, if it is another one now.
fn card_bonus(page: &Page, changes: &[Change], quote: &Quote) -> Option<String> {
    let is_of_cards = |change: &&Change| match change.field.as_str() {
        "gift_card_bonus_amount_cents" => true,
        "bonus_amount_cents" => unit(change, quote).is_some_and(QuotedUnit::is_for_card),
        _ => false,
    };
    let cents = |value: &Value| value.as_i64().unwrap_or_default();
    let added = |change: &Change| cents(&change.current) - cents(&change.quoted);
    let added: i64 = changes.iter().filter(is_of_cards).map(added).sum();
    let current = quote.card_bonus();
    let [old, new] = amounts(page, quote, &(current - added).into(), &current.into());
    (added != 0).then(|| page.t2("check-changed-bonus", "old", old, "new", new))
}

/// The items whose exchange has another price difference than before: `refund_type` says whether it has one, and the
/// bonus is a part of it.
fn price_differences(page: &Page, changes: &[Change], quote: &Quote) -> Vec<String> {
    let is_of_exchange = |change: &&Change| match change.field.as_str() {
        "refund_type" => true,
        "bonus_amount_cents" => !unit(change, quote).is_some_and(QuotedUnit::is_for_card),
        _ => false,
    };
    let changed = changes.iter().filter(is_of_exchange);
    let titles: BTreeSet<_> = changed.map(|change| title(change, quote)).collect();
    let change = page.t("check-changed-difference");
    let sentence = |title| page.t2("check-changed-item", "title", title, "change", &change);
    titles.into_iter().map(sentence).collect()
}

fn title(change: &Change, quote: &Quote) -> String {
    unit(change, quote).map(|unit| unit.title.clone()).unwrap_or_default()
}

/// A unit of the line of the changed one. The units of a line have the same resolution.
fn unit<'a>(change: &'a Change, quote: &'a Quote) -> Option<&'a QuotedUnit> {
    let ChangedUnit { order_identifier, order_line_item_identifier } = change.unit.as_ref()?;
    quote.line(order_identifier, order_line_item_identifier).next()
}

fn refused(page: &Page, quote: &Quote) -> Vec<String> {
    let sentence = |unit: &QuotedUnit| {
        let reason = refusal::sentence(page, unit.ineligible.as_ref()?, None);
        Some(page.t2("check-changed-item", "title", &unit.title, "change", reason))
    };
    let sentences: BTreeSet<_> = quote.units.iter().filter_map(sentence).collect();
    sentences.into_iter().collect()
}

/// The choices without the items that cannot be returned.
pub(super) fn possible_choices(draft: &ReturnDraft, quote: &Quote) -> ReturnDraft {
    let mut possible = draft.clone();
    possible.choices.retain(|choice| {
        quote.line(&choice.order, &choice.line).all(|unit| unit.ineligible.is_none())
    });
    possible
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::basket::tests::page;

    fn conflict() -> Conflict {
        let unit = |line: &str, unit: i32| {
            json!({
                "order_identifier": "A-1", "order_line_item_identifier": line, "unit": unit,
                "title": format!("Shirt {line}"), "sku": "S", "returnable": true,
            })
        };
        let mut late = unit("2", 1);
        late["ineligible"] = json!({ "code": "window_expired", "detail": "" });
        let change = |unit: Value, field: &str, quoted: Value, current: Value| json!({ "unit": unit, "field": field, "quoted": quoted, "current": current });
        let body = json!({
            "message": "the quote is out of date",
            "changes": [
                { "field": "return_shipping_cost_cents", "quoted": 0, "current": 495 },
                change(unit("1", 1), "refund_amount_cents", json!(4995), json!(4495)),
                change(unit("1", 2), "refund_amount_cents", json!(4995), json!(4495)),
                change(unit("2", 1), "ineligible", Value::Null, json!("window_expired")),
            ],
            "quote": {
                "quote": "token", "possible": false, "return_method": "mail-back", "currency": "EUR",
                "return_shipping_cost_cents": 495, "units": [unit("1", 1), unit("1", 2), late],
            },
        });
        Conflict::of(&serde_json::from_value(body).unwrap()).unwrap()
    }

    #[test]
    fn old_and_new_amounts_are_named() {
        let page = page();
        let conflict = conflict();
        let changed = Changed::new(&page, &conflict.changes, &conflict.quote);
        assert_eq!(
            changed.amounts,
            [
                "Return shipping was €0.00 and is now €4.95.",
                "Shirt 1: The refund was €99.90 and is now €89.90.",
            ]
        );
        let reason = page.t("ineligible-window-expired");
        assert_eq!(changed.refused, [format!("Shirt 2: {reason}")]);
    }

    #[test]
    fn a_changed_bonus_is_named() {
        let mut conflict = conflict();
        let change = |unit: Value, field: &str, quoted: i64, current: i64| -> Change {
            let change =
                json!({ "unit": unit, "field": field, "quoted": quoted, "current": current });
            serde_json::from_value(change).unwrap()
        };
        let line = json!({ "order_identifier": "A-1", "order_line_item_identifier": "1" });
        let changes = [
            change(Value::Null, "gift_card_bonus_amount_cents", 500, 0),
            change(line, "bonus_amount_cents", 0, 300),
        ];
        let named = |conflict: &Conflict| {
            Changed::new(&page(), &changes, &conflict.quote).amounts.join(" ")
        };
        let difference = "Shirt 1: The price difference of the exchange has changed.";
        let bonus = "The bonus on the gift card was €5.00 and is now €0.00.";
        assert_eq!(named(&conflict), format!("{bonus} {difference}"));
        conflict.quote.units[0].resolution = "gift_card".to_owned();
        conflict.quote.units[0].bonus_amount_cents = Some(300);
        assert_eq!(named(&conflict), "The bonus on the gift card was €5.00 and is now €3.00.");
    }

    #[test]
    fn items_that_are_refused_can_be_left_out() {
        let draft = ReturnDraft::parse("i=A-1~1~2~SMALL~refund&i=A-1~2~1~SMALL~refund").unwrap();
        let possible = possible_choices(&draft, &conflict().quote);
        assert_eq!(possible.query(), "i=A-1%7E1%7E2%7ESMALL%7Erefund");
    }

    #[test]
    fn another_conflict_has_no_quote() {
        let body = json!({ "message": "one of the units is in another return already" });
        assert!(Conflict::of(&serde_json::from_value(body).unwrap()).is_none());
    }
}
