//! The differences between two lists of rules, as sentences.

use std::collections::BTreeSet;

use domain::merchant::{Rule, Settings};
use serde::Deserialize as _;
use serde_json::Value;

use super::{draft::id_of, sentences};

/// A rule that two lists do not have in common.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The id of the rule, or the order of the rules.
    pub(super) name: String,
    /// The sentence in the first list; `None`: it has no such rule.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Difference {
    pub(super) fn kind(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        }
    }

    /// The class of the badge.
    pub(super) fn tone(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "good",
            (_, None) => "bad",
            _ => "info",
        }
    }
}

/// A rule as a sentence.
pub(super) fn sentence(rule: &Value, settings: &Settings) -> String {
    match Rule::deserialize(rule) {
        Ok(rule) => sentences::of_rule(&rule, settings),
        // A draft can have faults, which the service reports that reads it.
        Err(_) => "This rule cannot be shown as a sentence.".to_owned(),
    }
}

/// The rules that were removed, changed and added, and the order of those that both lists have.
pub(super) fn differences(
    before: &[Value],
    after: &[Value],
    settings: &Settings,
) -> Vec<Difference> {
    let find = |rules: &[Value], id: &str| {
        rules.iter().find(|rule| id_of(rule) == Some(id)).map(|rule| sentence(rule, settings))
    };
    let mut seen = BTreeSet::new();
    let ids = before.iter().chain(after).filter_map(id_of).filter(|id| seen.insert(*id));
    let mut differences: Vec<_> = ids
        .map(|id| Difference {
            name: id.to_owned(),
            before: find(before, id),
            after: find(after, id),
        })
        .filter(|difference| difference.before != difference.after)
        .collect();
    let old_order = common(before, after);
    let new_order = common(after, before);
    if old_order != new_order {
        differences.push(Difference {
            name: "Order of the rules".to_owned(),
            before: Some(old_order.join(", ")),
            after: Some(new_order.join(", ")),
        });
    }
    differences
}

/// The ids of the rules that another list has too, in order.
fn common<'a>(rules: &'a [Value], others: &[Value]) -> Vec<&'a str> {
    let others: BTreeSet<_> = others.iter().filter_map(id_of).collect();
    rules.iter().filter_map(id_of).filter(|id| others.contains(id)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(id: &str, days: u16) -> Value {
        json!({ "id": id, "then": { "window": { "days": days } } })
    }

    fn window(days: u16) -> Option<String> {
        Some(format!("Always: the unit can be returned for {days} days from shipping."))
    }

    #[test]
    fn rules_that_differ_are_shown_as_sentences() {
        let settings = Settings::new("Acme");
        let before = [rule("same", 2), rule("removed", 3), rule("changed", 4), rule("moved", 5)];
        let after = [rule("moved", 5), rule("same", 2), rule("changed", 6), rule("added", 7)];
        let difference =
            |name: &str, before, after| Difference { name: name.to_owned(), before, after };
        let order = |ids: &str| Some(ids.to_owned());
        assert_eq!(
            differences(&before, &after, &settings),
            [
                difference("removed", window(3), None),
                difference("changed", window(4), window(6)),
                difference("added", None, window(7)),
                difference(
                    "Order of the rules",
                    order("same, changed, moved"),
                    order("moved, same, changed")
                ),
            ]
        );
        assert_eq!(differences(&after, &after, &settings), []);
    }

    #[test]
    fn a_faulty_rule_has_a_sentence_too() {
        let faulty = json!({ "id": "a", "then": { "window": "soon" } });
        let sentence = sentence(&faulty, &Settings::new("Acme"));
        assert_eq!(sentence, "This rule cannot be shown as a sentence.");
    }
}
