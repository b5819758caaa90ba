//! A merchant's rules, prepared once for the decisions about many units.
//!
//! An index has the rules that name a value, in the spelling in which values are compared. The rules that name the tags
//! of a line are then found with one lookup for each tag of the line, however many tags the rules name.

use std::collections::{HashMap, HashSet};

use super::NON_RETURNABLE_TAGS;
use crate::merchant::{Conditions, Rule, Settings, normalized_tag};

/// A merchant's rules by the values that they name, and the tags that forbid a return.
#[derive(Debug)]
pub struct PreparedPolicy {
    pub(super) line_tags: RuleIndex,
    pub(super) order_tags: RuleIndex,
    pub(super) countries: RuleIndex,
    pub(super) concepts: RuleIndex,
    pub(super) shoppers: RuleIndex,
    pub(super) reasons: RuleIndex,
    final_sale_tags: HashSet<String>,
}

/// The rules that name a value, for one condition.
#[derive(Debug)]
pub(super) struct RuleIndex {
    /// For each rule, whether it does not have the condition.
    unconditional: Vec<bool>,
    /// The places of the rules that name a value.
    named: HashMap<String, Vec<usize>>,
}

impl PreparedPolicy {
    pub fn new(settings: &Settings) -> Self {
        let rules = &settings.policy.rules;
        let own = settings.final_sale_tags.iter().map(String::as_str);
        Self {
            line_tags: RuleIndex::of_tags(rules, |when| when.line_tags.as_ref()),
            order_tags: RuleIndex::of_tags(rules, |when| when.order_tags.as_ref()),
            countries: RuleIndex::new(rules, |when| when.countries.as_ref(), str::to_owned),
            concepts: RuleIndex::new(rules, |when| when.concepts.as_ref(), str::to_owned),
            shoppers: RuleIndex::new(rules, |when| when.shoppers.as_ref(), str::to_owned),
            reasons: RuleIndex::new(rules, |when| when.reasons.as_ref(), str::to_owned),
            final_sale_tags: NON_RETURNABLE_TAGS
                .into_iter()
                .chain(own)
                .map(normalized_tag)
                .collect(),
        }
    }

    /// Whether a normalized tag forbids a return.
    pub(super) fn is_final_sale(&self, tag: &str) -> bool {
        self.final_sale_tags.contains(tag)
    }
}

impl RuleIndex {
    fn of_tags(rules: &[Rule], values: fn(&Conditions) -> Option<&Vec<String>>) -> Self {
        Self::new(rules, values, normalized_tag)
    }

    fn new(
        rules: &[Rule],
        values: fn(&Conditions) -> Option<&Vec<String>>,
        spelling: fn(&str) -> String,
    ) -> Self {
        let mut unconditional = Vec::with_capacity(rules.len());
        let mut named = HashMap::<String, Vec<usize>>::new();
        for (place, rule) in rules.iter().enumerate() {
            let values = values(&rule.when);
            unconditional.push(values.is_none());
            for value in values.into_iter().flatten() {
                let places = named.entry(spelling(value)).or_default();
                // Two spellings of a tag are one value.
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
        }
        Self { unconditional, named }
    }

    /// For each rule, whether its condition holds for one of the values.
    pub(super) fn holds<'v>(&self, values: impl IntoIterator<Item = &'v str>) -> Vec<bool> {
        let mut holds = self.unconditional.clone();
        if self.named.is_empty() {
            return holds;
        }
        for value in values {
            for place in self.named.get(value).into_iter().flatten() {
                if let Some(holds) = holds.get_mut(*place) {
                    *holds = true;
                }
            }
        }
        holds
    }
}
