//! Checks of rules against the other settings, and warnings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::shadowed::{ComparedRule, Numbers};
use super::{Outcome, Policy};
use crate::json::FieldError;
use crate::merchant::policy::{ReturnPolicy, WITHDRAWAL};

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
    /// Errors of names that the merchant's other settings do not have. Such a condition can never hold.
    pub(in crate::merchant) fn errors(&self, returns: &ReturnPolicy) -> Vec<FieldError> {
        let mut errors = Vec::new();
        for (index, rule) in self.rules.iter().enumerate() {
            let mut check = |field: &str, place: usize, is_known: bool, detail: String| {
                if !is_known {
                    let field = format!("$.policy.rules[{index}].{field}[{place}]");
                    errors.push(FieldError::invalid(field, detail));
                }
            };
            for (place, code) in rule.when.reasons.iter().flatten().enumerate() {
                let mut codes = returns.reasons.iter().map(|reason| reason.code.as_str());
                let is_known = code == WITHDRAWAL || codes.any(|known| known == code);
                let detail = format!("can never hold: returns.reasons has no code {code}");
                check("when.reasons", place, is_known, detail);
            }
            let methods = [("when", &rule.when.methods), ("then", &rule.then.methods)];
            let outcomes = [("when", &rule.when.outcomes), ("then", &rule.then.outcomes)];
            for (part, methods) in methods {
                for (place, method) in methods.iter().flatten().enumerate() {
                    let is_known = returns.methods.iter().any(|offer| offer.method == *method);
                    let detail = format!("returns.methods does not offer {method}");
                    check(&format!("{part}.methods"), place, is_known, detail);
                }
            }
            for (part, outcomes) in outcomes {
                for (place, outcome) in outcomes.iter().flatten().enumerate() {
                    let is_known = *outcome != Outcome::GiftCard || returns.gift_card.is_some();
                    let detail = "returns.gift_card offers no gift card".to_owned();
                    check(&format!("{part}.outcomes"), place, is_known, detail);
                }
            }
            for (place, name) in rule.when.shoppers.iter().flatten().enumerate() {
                let is_known = self.shoppers.contains_key(name);
                let detail = format!("can never hold: policy.shoppers has no list {name}");
                check("when.shoppers", place, is_known, detail);
            }
        }
        errors
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
                detail: format!("never decides anything: {names} always decides first"),
            })
        };
        self.rules.iter().enumerate().filter_map(warning).collect()
    }
}
