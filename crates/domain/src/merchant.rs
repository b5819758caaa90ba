//! A merchant: how returns work for it, and where and how its messages are delivered.
//!
//! A merchant is changed and published as a whole, under a version that only grows; whoever holds
//! a copy replaces it when the version is higher and ignores it otherwise.

mod changes;
mod endpoint;
mod policy;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{access::MerchantId, event::Event};

pub use changes::{EndpointChange, SettingsChange, read_new_merchant};
pub use endpoint::{
    Authentication, CredentialsIn, Endpoint, Interface, Sealed, SigningSecret, UnknownInterface,
};
pub use policy::{MethodOffer, ReturnPolicy, ReturnReason};

/// How returns work for a merchant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settings {
    pub name: String,
    /// IANA time zone, for days and windows.
    #[schema(example = "America/New_York")]
    pub time_zone: String,
    /// ISO 4217 code, for shipping costs and bonus; orders in another currency have neither.
    #[schema(example = "USD")]
    pub currency: String,
    /// Whether we receive the returned goods for the merchant.
    pub managed_receiving: bool,
    /// Days from shipping within which units can be returned.
    pub return_window_days: u16,
    /// Line tags that forbid a return, beside those that always do.
    pub final_sale_tags: Vec<String>,
    /// What shoppers can choose.
    #[serde(default)]
    pub returns: ReturnPolicy,
    /// Refuse orders whose sums do not add up, instead of warning.
    pub strict_amounts: bool,
    /// Refuse new refunds dated in the past.
    pub strict_refund_dates: bool,
    /// Whom we tell when messages cannot be delivered.
    pub support_contact: Option<SupportContact>,
    /// What the paths of endpoints are relative to.
    #[schema(example = "https://api.acme.example/hooks")]
    pub base_url: Option<String>,
}

/// Whom to reach at the merchant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SupportContact {
    pub email: String,
    pub name: Option<String>,
    pub phone: Option<String>,
}

impl Settings {
    /// What a merchant begins with.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            time_zone: "UTC".to_owned(),
            currency: "USD".to_owned(),
            managed_receiving: false,
            return_window_days: 30,
            final_sale_tags: Vec::new(),
            returns: ReturnPolicy::default(),
            strict_amounts: false,
            strict_refund_dates: false,
            support_contact: None,
            base_url: None,
        }
    }

    /// What holds for orders in this currency. We know no rates, so an amount in another one than
    /// the merchant's would be a wrong price.
    pub fn in_currency(&self, code: &str) -> Cow<'_, Self> {
        if self.currency == code {
            return Cow::Borrowed(self);
        }
        let mut settings = self.clone();
        for offer in &mut settings.returns.methods {
            offer.shipping_cost_cents = 0;
        }
        if let Some(card) = &mut settings.returns.gift_card {
            card.bonus_credit_amount_cents = 0;
        }
        Cow::Owned(settings)
    }
}

/// A merchant as auth keeps it and every other service copies it. Secrets in it are sealed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Merchant {
    pub identifier: MerchantId,
    pub version: i64,
    pub settings: Settings,
    #[schema(value_type = BTreeMap<String, Endpoint<Sealed>>)]
    pub endpoints: BTreeMap<Interface, Endpoint<Sealed>>,
}

impl Merchant {
    pub fn new(identifier: MerchantId, settings: Settings) -> Self {
        Self { identifier, version: 1, settings, endpoints: BTreeMap::new() }
    }
}

/// A merchant was added or changed; this is what it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MerchantChanged {
    pub merchant: Merchant,
}

impl Event for MerchantChanged {
    const TYPE: &'static str = "merchant.changed.v1";

    fn subject(&self) -> String {
        format!("merchant/{}", self.merchant.identifier)
    }
}
