//! The appearance of a merchant's returns portal.
//!
//! See docs/decisions/portal-appearance.md.

mod change;
mod color;
mod hosts;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;
use utoipa::ToSchema;

use super::policy::ReturnReason;
use crate::json::FieldError;

pub(super) use change::{AppearanceChange, distinct, entries};
pub use color::{Color, Colors, InvalidColor, MIN_CONTRAST};

/// How the returns portal of a merchant looks, and how shoppers find their orders in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Appearance {
    /// The name that shoppers see. Absent: the name of the merchant.
    #[schema(min_length = 1, max_length = 200, example = "Acme")]
    pub name: Option<String>,
    #[schema(max_length = 2000, example = "https://cdn.acme.example/logo.svg")]
    pub logo_url: Option<String>,
    pub colors: Colors,
    /// The languages of the portal. The first is the default.
    #[schema(min_items = 1, max_items = 4)]
    pub languages: Vec<Language>,
    /// Labels of return reasons, by the code of the reason and the language. A reason without a label
    /// in a language has the label of `returns.reasons`.
    #[schema(
        value_type = BTreeMap<String, BTreeMap<String, String>>,
        example = json!({ "TOO_SMALL": { "en": "Too small", "de": "Zu klein" } })
    )]
    pub reason_labels: BTreeMap<String, ReasonLabels>,
    /// The page with the merchant's return policy.
    #[schema(max_length = 2000, example = "https://acme.example/returns")]
    pub policy_url: Option<String>,
    /// The page on which shoppers can contact the merchant.
    #[schema(max_length = 2000, example = "https://acme.example/contact")]
    pub contact_url: Option<String>,
    #[schema(max_length = 254, example = "help@acme.example")]
    pub contact_email: Option<String>,
    /// Hosts of product pictures, with a port if it is not the default one. The portal shows no
    /// pictures of other hosts.
    #[schema(max_items = 20, example = json!(["cdn.acme.example"]))]
    pub image_hosts: Vec<String>,
    /// Host names of this merchant's portal. No other merchant can use them.
    #[schema(max_items = 10, example = json!(["returns.acme.example"]))]
    pub host_names: Vec<String>,
    /// Facts of which a shopper must know one, beside the identifier of the order.
    #[schema(min_items = 1, max_items = 2)]
    pub lookup_keys: Vec<LookupKey>,
    /// Whether the portal offers withdrawal from the contract (Directive (EU) 2023/2673).
    pub withdrawal: bool,
}

/// The labels of one return reason.
pub type ReasonLabels = BTreeMap<Language, String>;

impl Default for Appearance {
    /// A neutral theme in English.
    fn default() -> Self {
        Self {
            name: None,
            logo_url: None,
            colors: Colors::default(),
            languages: vec![Language::En],
            reason_labels: BTreeMap::new(),
            policy_url: None,
            contact_url: None,
            contact_email: None,
            image_hosts: Vec::new(),
            host_names: Vec::new(),
            lookup_keys: LookupKey::ALL.to_vec(),
            withdrawal: false,
        }
    }
}

impl Appearance {
    /// Errors that span several fields: contrast, and labels of reasons that do not exist.
    pub(super) fn errors(&self, reasons: &[ReturnReason]) -> Vec<FieldError> {
        let unknown = |code: &&String| reasons.iter().all(|reason| reason.code != **code);
        let unknown = self.reason_labels.keys().find(unknown).map(|code| {
            let detail = format!("returns.reasons has no reason with the code {code}");
            FieldError::invalid("$.appearance.reason_labels", detail)
        });
        self.colors.low_contrasts().chain(unknown).collect()
    }

    /// Removes the labels of reasons that do not exist.
    pub(super) fn retain_labels(&mut self, reasons: &[ReturnReason]) {
        self.reason_labels.retain(|code, _| reasons.iter().any(|reason| reason.code == *code));
    }
}

crate::words! {
    /// A language of the portal.
    pub enum Language as "lowercase" {
        En,
        De,
        Fr,
        Es,
    }
}

impl Language {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The code of ISO 639-1.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

crate::words! {
    /// A fact about an order that shoppers know.
    pub enum LookupKey as "snake_case" {
        /// The e-mail address of the customer.
        Email,
        /// The zip code of the shipping address.
        ZipCode,
    }
}

impl LookupKey {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
