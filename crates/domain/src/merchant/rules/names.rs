//! The names in a rule that stand for something in the merchant's other settings.

use std::str::FromStr;

use super::{Outcome, Rule};
use crate::json::JsonValue;
use crate::merchant::return_method::ReturnMethod;

/// The names in a rule, by list. An element that cannot be read is `None`.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) reasons: Vec<Option<String>>,
    /// Those of the conditions, then those of the effects.
    pub(super) methods: [Vec<Option<ReturnMethod>>; 2],
    /// Those of the conditions, then those of the effects.
    pub(super) outcomes: [Vec<Option<Outcome>>; 2],
    pub(super) shoppers: Vec<Option<String>>,
    /// `None` also if it cannot be read.
    pub(super) return_to: Option<String>,
}

impl From<&Rule> for Names {
    fn from(Rule { when, then, .. }: &Rule) -> Self {
        Self {
            reasons: named(when.reasons.as_ref()),
            methods: [&when.methods, &then.methods].map(|it| named(it.as_ref())),
            outcomes: [&when.outcomes, &then.outcomes].map(|it| named(it.as_ref())),
            shoppers: named(when.shoppers.as_ref()),
            return_to: then.return_to.clone(),
        }
    }
}

fn named<T: Clone>(list: Option<&Vec<T>>) -> Vec<Option<T>> {
    list.into_iter().flatten().cloned().map(Some).collect()
}

impl Names {
    /// The names in a rule that may have faults.
    pub(super) fn readable(rule: JsonValue<'_>) -> Self {
        let parts = ["when", "then"];
        let return_to = rule.get("then").and_then(|then| then.get("return_to")?.as_str());
        Self {
            reasons: texts(rule, "when", "reasons"),
            methods: parts.map(|part| words(rule, part, "methods")),
            outcomes: parts.map(|part| words(rule, part, "outcomes")),
            shoppers: texts(rule, "when", "shoppers"),
            return_to: return_to.map(str::to_owned),
        }
    }
}

fn texts(rule: JsonValue<'_>, part: &str, list: &str) -> Vec<Option<String>> {
    let list = rule.get(part).and_then(|part| part.get(list));
    let elements = list.into_iter().flat_map(JsonValue::elements);
    elements.map(|it| it.as_str().map(str::to_owned)).collect()
}

fn words<T: FromStr>(rule: JsonValue<'_>, part: &str, list: &str) -> Vec<Option<T>> {
    texts(rule, part, list).into_iter().map(|word| word?.parse().ok()).collect()
}
