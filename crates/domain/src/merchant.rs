//! A merchant: its return settings and its endpoints.
//!
//! A merchant is published as a whole, with a version that only grows. A service replaces its copy
//! when the published version is higher.

mod appearance;
mod authentication;
mod day;
mod endpoint;
mod endpoint_change;
pub mod guard;
mod headers;
mod interface;
mod mails;
mod patch;
mod pem;
mod policy;
mod return_method;
mod rules;
mod secret_url;
mod settings;
mod settings_change;
mod urls;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    access::MerchantId, event::Event, message_kind::MessageVersion, warehouse::Warehouses,
};

pub use appearance::{
    Appearance, Color, Colors, InvalidColor, Language, LookupKey, MIN_CONTRAST, ReasonLabels,
};
pub use authentication::{Authentication, CredentialsIn};
pub use day::end_of_day;
pub use endpoint::{Endpoint, Sealed, SigningSecret};
pub use headers::REDACTED;
pub use headers::is_reserved_header;
pub use interface::{Interface, UnknownInterface};
pub use mails::{MailEvent, MailEvents, MailText, ShopperMails};
pub use policy::{GiftCardOffer, MethodOffer, ReturnPolicy, ReturnReason, WITHDRAWAL};
pub use return_method::ReturnMethod;
pub use rules::{
    Conditions, Cost, DateRange, DayRange, Effects, Keep, Outcome, Policy, PolicyWarning,
    PriceRange, ReturnCount, Review, ReviewDecision, ReviewTerms, Rule, WeightRange, Window,
    WindowStart, matches_pattern, normalized_tag,
};
pub use secret_url::SecretUrl;
pub use settings::{Settings, SupportContact};
pub use settings_change::{SettingsChange, read_new_merchant};

/// A merchant as auth stores it and every other service copies it. Its secrets are encrypted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Merchant {
    pub identifier: MerchantId,
    pub version: i64,
    pub settings: Settings,
    // Boxed, because a map allocates space for eleven values even if it has one.
    #[schema(value_type = BTreeMap<String, Endpoint<Sealed>>)]
    pub endpoints: BTreeMap<Interface, Box<Endpoint<Sealed>>>,
    /// The warehouses by our identifier.
    #[serde(default)]
    pub warehouses: Warehouses,
}

impl Merchant {
    pub fn new(identifier: MerchantId, settings: Settings) -> Self {
        Self {
            identifier,
            version: 1,
            settings,
            endpoints: BTreeMap::new(),
            warehouses: Warehouses::new(),
        }
    }

    /// The version of the messages that the merchant's endpoint has chosen, else that of the contract.
    pub fn message_version(&self, interface: Interface) -> MessageVersion {
        let chosen = self.endpoints.get(&interface).and_then(|endpoint| endpoint.version);
        chosen.unwrap_or_else(|| interface.default_version())
    }
}

/// A merchant was created or changed. The event contains the new state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MerchantChanged {
    pub merchant: Merchant,
}

impl Event for MerchantChanged {
    const TYPE: &'static str = "merchant.changed.v1";

    fn subject(&self) -> String {
        format!("merchant/{}", self.merchant.identifier)
    }
}

#[cfg(test)]
mod tests;
