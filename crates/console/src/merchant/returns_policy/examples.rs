//! The examples of docs/write-a-returns-policy.md, which a person can add to a draft.

use serde_json::{Map, Value};

/// An example: its key in the form, its name, and its policy.
pub(super) struct Example {
    pub(super) key: &'static str,
    pub(super) name: &'static str,
    json: &'static str,
}

pub(super) const EXAMPLES: &[Example] = &[
    Example {
        key: "holiday",
        name: "A holiday window",
        json: r#"{ "rules": [{
            "id": "holiday",
            "when": { "ordered": { "from": "2026-11-01", "until": "2026-12-24" } },
            "then": { "window": { "days": 30, "until": "2027-01-31" } } }] }"#,
    },
    Example {
        key: "in-store-only",
        name: "In store only",
        json: r#"{ "rules": [{
            "id": "in-store-only",
            "text": { "en": "Please bring this item to one of our stores.",
                      "de": "Bitte bringen Sie diesen Artikel in eine unserer Filialen." },
            "when": { "line_tags": ["bulky"] },
            "then": { "methods": ["express-returns"] } }] }"#,
    },
    Example {
        key: "faulty-goods",
        name: "A free return for faulty goods",
        json: r#"{ "rules": [{
            "id": "faulty-goods",
            "when": { "reasons": ["DAMAGED", "WRONG_ITEM"] },
            "then": { "costs": [{ "shipping_cost_cents": 0 }], "window": { "days": 60, "from": "delivery" } } }] }"#,
    },
    Example {
        key: "keep-small-items",
        name: "Keep small items",
        json: r#"{ "rules": [
            { "id": "no-keeping-for-frequent-returners",
              "when": { "returns_of_shopper": { "days": 90, "min": 3 } },
              "then": { "keep": { "up_to_cents": 0 } } },
            { "id": "keep-small-items",
              "text": { "en": "You can keep items up to 15.00 USD in all." },
              "then": { "keep": { "up_to_cents": 1500, "currency": "USD" } } }] }"#,
    },
    Example {
        key: "frequent-returners",
        name: "Frequent returners pay",
        json: r#"{ "rules": [
            { "id": "trusted",
              "when": { "shoppers": ["trusted"] },
              "then": { "costs": [{ "shipping_cost_cents": 0 }] } },
            { "id": "frequent-returners",
              "when": { "returns_of_shopper": { "days": 90, "min": 5 } },
              "then": { "costs": [{ "method": "mail-back", "currency": "USD", "shipping_cost_cents": 900 }] } }],
          "shoppers": { "trusted": ["a4c14f1b068bf2c602e289b5dfcd89085692c73c63daf5a90a0b481b7328ee35"] } }"#,
    },
    Example {
        key: "review",
        name: "Review of frequent returners",
        json: r#"{ "rules": [
            { "id": "no-review-of-withdrawals",
              "when": { "reasons": ["withdrawal"] },
              "then": { "review": { "required": false } } },
            { "id": "no-review-of-trusted",
              "when": { "shoppers": ["trusted"] },
              "then": { "review": { "required": false } } },
            { "id": "frequent-returners",
              "text": { "en": "You have returned a lot lately, so we look at this return first." },
              "when": { "returns_of_shopper": { "days": 90, "min": 5 } },
              "then": { "review": { "within_days": 3, "then": "approve" } } }],
          "shoppers": { "trusted": ["a4c14f1b068bf2c602e289b5dfcd89085692c73c63daf5a90a0b481b7328ee35"] } }"#,
    },
];

impl Example {
    pub(super) fn find(key: &str) -> Option<&'static Self> {
        EXAMPLES.iter().find(|example| example.key == key)
    }

    /// The `rules` and, if the example needs them, `shoppers`.
    pub(super) fn policy(&self) -> Map<String, Value> {
        serde_json::from_str(self.json).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUIDE: &str = include_str!("../../../../../docs/write-a-returns-policy.md");

    #[test]
    fn the_examples_are_those_of_the_guide() {
        let blocks = GUIDE.split("```json\n").skip(1).filter_map(|block| block.split("```").next());
        let guide: Vec<Value> =
            blocks.take(EXAMPLES.len()).map(|block| serde_json::from_str(block).unwrap()).collect();
        let own: Vec<_> = EXAMPLES.iter().map(|example| Value::from(example.policy())).collect();
        assert_eq!(own, guide);
    }
}
