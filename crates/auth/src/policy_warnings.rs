//! Warnings about rules that have no effect, computed once for each version of a merchant.
//!
//! All rules of a policy are compared with each other, so this takes time for a long policy, and every response with a
//! merchant has the warnings.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use domain::{
    access::MerchantId,
    merchant::{Merchant, PolicyWarning},
};
use tokio::task::spawn_blocking;

use crate::error::Error;

/// The warnings about merchants with several rules.
#[derive(Debug, Default)]
pub(crate) struct PolicyWarnings(Mutex<HashMap<MerchantId, Known>>);

/// The warnings about a version of a merchant.
#[derive(Debug)]
struct Known {
    version: i64,
    warnings: Vec<PolicyWarning>,
}

impl PolicyWarnings {
    /// The warnings about the rules of a stored merchant.
    pub(crate) async fn of(&self, merchant: &Merchant) -> Result<Vec<PolicyWarning>, Error> {
        if merchant.settings.policy.rules.len() < 2 {
            return Ok(Vec::new());
        }
        let version = merchant.version;
        if let Some(known) = self.known().get(&merchant.identifier)
            && known.version == version
        {
            return Ok(known.warnings.clone());
        }
        let policy = merchant.settings.policy.clone();
        let currency = merchant.settings.currency.clone();
        let warnings = spawn_blocking(move || policy.warnings(&currency)).await?;
        let known = Known { version, warnings: warnings.clone() };
        self.known().insert(merchant.identifier.clone(), known);
        Ok(warnings)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<MerchantId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use domain::merchant::Settings;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn warnings_are_computed_once_for_a_version() {
        let warnings = PolicyWarnings::default();
        let mut merchant = Merchant::new("acme".parse().unwrap(), Settings::new("Acme"));
        let rule = |id: &str| json!({ "id": id, "then": { "returnable": false } });
        let rules = json!([rule("first"), rule("second")]);
        merchant.settings.policy.rules = serde_json::from_value(rules).unwrap();
        let named = async |merchant: &Merchant| {
            let warnings = warnings.of(merchant).await.unwrap();
            warnings.into_iter().map(|warning| warning.rule).collect::<Vec<_>>()
        };
        assert_eq!(named(&merchant).await, ["second"]);
        // The same version is not looked at again, and a new one is.
        merchant.settings.policy.rules.reverse();
        assert_eq!(named(&merchant).await, ["second"]);
        merchant.version += 1;
        assert_eq!(named(&merchant).await, ["first"]);
        merchant.settings.policy.rules.pop();
        assert!(named(&merchant).await.is_empty());
    }
}
