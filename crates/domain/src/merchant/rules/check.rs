//! Checks of rules against the other settings, and warnings.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::names::Names;
use super::read::MAX_RULES;
use super::shadowed::{ComparedRule, Numbers};
use super::{Outcome, Policy};
use crate::json::{FieldError, JsonValue, Object};
use crate::merchant::policy::{ReturnPolicy, WITHDRAWAL};
use crate::warehouse::Warehouses;

/// A rule that has no effect as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyWarning {
    /// JSONPath of the rule in the settings.
    #[schema(example = "$.policy.rules[2]")]
    pub field: String,
    #[schema(example = "final-sale-again")]
    pub rule: String,
    pub detail: String,
}

impl Policy {
    /// Errors of names that the merchant's other settings and its warehouses do not have. Such a condition can never
    /// hold.
    pub(in crate::merchant) fn errors(
        &self,
        returns: &ReturnPolicy,
        warehouses: &Warehouses,
    ) -> Vec<FieldError> {
        unknown_names(self.rules.iter().map(Names::from), &self.list_names(), returns, warehouses)
    }

    /// The same errors of a draft that may have faults. A part that it does not have stays as it is.
    pub(in crate::merchant) fn errors_of_draft(
        &self,
        draft: &Object<'_>,
        returns: &ReturnPolicy,
        warehouses: &Warehouses,
    ) -> Vec<FieldError> {
        let rules = draft.optional("rules", |rules| {
            let rules = rules.value().elements().take(MAX_RULES);
            Some(rules.map(Names::readable).collect::<Vec<_>>())
        });
        let rules = rules.flatten();
        let lists = draft.optional("shoppers", |lists| match lists.value() {
            JsonValue::Object(lists) => {
                Some(lists.iter().map(|(name, _)| name.to_owned()).collect::<BTreeSet<_>>())
            }
            _ => None,
        });
        let lists = lists.flatten().unwrap_or_else(|| self.list_names());
        unknown_names(
            rules.unwrap_or_else(|| self.rules.iter().map(Names::from).collect()),
            &lists,
            returns,
            warehouses,
        )
    }

    fn list_names(&self) -> BTreeSet<String> {
        self.shoppers.keys().cloned().collect()
    }

    /// Rules without an effect, because earlier rules match whenever they do and name the same effects.
    pub fn warnings(&self, merchant_currency: &str) -> Vec<PolicyWarning> {
        let mut numbers = Numbers::default();
        let compared = self.rules.iter();
        let compared: Vec<_> =
            compared.map(|rule| ComparedRule::new(rule, merchant_currency, &mut numbers)).collect();
        let warning = |(index, rule): (usize, &super::Rule)| {
            let names = compared.get(index)?.shadowed_by(compared.get(..index)?)?;
            Some(PolicyWarning {
                field: format!("$.policy.rules[{index}]"),
                rule: rule.id.clone(),
                detail: format!(
                    "never decides anything, because earlier rules always decide: {names}"
                ),
            })
        };
        self.rules.iter().enumerate().filter_map(warning).collect()
    }
}

/// Errors of names that are neither those of lists nor of warehouses nor in the return policy.
fn unknown_names(
    rules: impl IntoIterator<Item = Names>,
    lists: &BTreeSet<String>,
    returns: &ReturnPolicy,
    warehouses: &Warehouses,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in rules.into_iter().enumerate() {
        let mut check = |list: &str, place: usize, is_known: bool, detail: String| {
            if !is_known {
                let field = format!("$.policy.rules[{index}].{list}[{place}]");
                errors.push(FieldError::invalid(field, detail));
            }
        };
        for (place, code) in placed(&rule.reasons) {
            let mut codes = returns.reasons.iter().map(|reason| reason.code.as_str());
            let is_known = code == WITHDRAWAL || codes.any(|known| known == code);
            let detail = format!("can never hold: returns.reasons has no code {code}");
            check("when.reasons", place, is_known, detail);
        }
        for (list, methods) in ["when.methods", "then.methods"].into_iter().zip(&rule.methods) {
            for (place, method) in placed(methods) {
                let is_known = returns.methods.iter().any(|offer| offer.method == *method);
                check(list, place, is_known, format!("returns.methods does not offer {method}"));
            }
        }
        for (list, outcomes) in ["when.outcomes", "then.outcomes"].into_iter().zip(&rule.outcomes) {
            for (place, outcome) in placed(outcomes) {
                let is_known = *outcome != Outcome::GiftCard || returns.gift_card.is_some();
                let detail = "returns.gift_card offers no gift card".to_owned();
                check(list, place, is_known, detail);
            }
        }
        for (place, name) in placed(&rule.shoppers) {
            let detail = format!("can never hold: policy.shoppers has no list {name}");
            check("when.shoppers", place, lists.contains(name), detail);
        }
        let return_to = rule.return_to.as_deref();
        if let Some(detail) = return_to.and_then(|name| fault_of_warehouse(name, warehouses)) {
            let field = format!("$.policy.rules[{index}].then.return_to");
            errors.push(FieldError::invalid(field, detail));
        }
    }
    errors
}

/// Why no unit can go to a warehouse.
fn fault_of_warehouse(identifier: &str, warehouses: &Warehouses) -> Option<String> {
    match warehouses.get(identifier) {
        None => Some(format!("the merchant has no warehouse {identifier}")),
        Some(warehouse) if warehouse.address.is_none() => {
            Some(format!("warehouse {identifier} has no address"))
        }
        Some(_) => None,
    }
}

/// The names that can be read, with their places.
fn placed<T>(names: &[Option<T>]) -> impl Iterator<Item = (usize, &T)> {
    names.iter().enumerate().filter_map(|(place, name)| Some((place, name.as_ref()?)))
}
