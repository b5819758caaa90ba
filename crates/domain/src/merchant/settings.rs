//! The settings of a merchant.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::appearance::Appearance;
use super::mails::{MailEvent, ShopperMails};
use super::policy::ReturnPolicy;
use super::rules::Policy;

/// The days between a reminder and the end of the time to send a return.
const REMINDED_DAYS_BEFORE: u16 = 3;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Settings {
    pub name: String,
    /// IANA time zone, for days and return windows.
    #[schema(example = "America/New_York")]
    pub time_zone: String,
    /// ISO 4217 code of shipping costs and bonus. Orders in another currency have neither.
    #[schema(example = "USD")]
    pub currency: String,
    /// Whether Backhaul receives returned units for the merchant.
    pub managed_receiving: bool,
    /// Days after shipping within which units can be returned.
    pub return_window_days: u16,
    /// Line tags that forbid a return, in addition to the built-in tags.
    pub final_sale_tags: Vec<String>,
    /// The heaviest unit that can be returned with `express-returns`, in the unit of the lines'
    /// `weight`. Absent: any weight.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    pub express_max_weight: Option<f64>,
    /// The `concept` of exchange items whose line and order name none.
    #[schema(min_length = 1, max_length = 255, example = "Acme Sport")]
    pub concept: Option<String>,
    /// The options of shoppers.
    #[serde(default)]
    pub returns: ReturnPolicy,
    /// The rules for returns. These settings are the last rule.
    #[serde(default)]
    pub policy: Policy,
    /// The returns portal.
    #[serde(default)]
    pub appearance: Appearance,
    /// The mails to shoppers.
    #[serde(default)]
    pub mails: ShopperMails,
    /// Reject orders whose sums do not add up, instead of warning.
    pub strict_amounts: bool,
    /// Reject new refunds dated in the past.
    pub strict_refund_dates: bool,
    /// The contact for undeliverable messages.
    pub support_contact: Option<SupportContact>,
    /// The base URL of endpoint paths.
    #[schema(example = "https://api.acme.example/hooks")]
    pub base_url: Option<String>,
}

/// A contact at the merchant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SupportContact {
    #[schema(min_length = 3, max_length = 254)]
    pub email: String,
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
    #[schema(min_length = 1, max_length = 50)]
    pub phone: Option<String>,
}

impl Settings {
    /// The default settings.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            time_zone: "UTC".to_owned(),
            currency: "USD".to_owned(),
            managed_receiving: false,
            return_window_days: 30,
            final_sale_tags: Vec::new(),
            express_max_weight: None,
            concept: None,
            returns: ReturnPolicy::default(),
            policy: Policy::default(),
            appearance: Appearance::default(),
            mails: ShopperMails::default(),
            strict_amounts: false,
            strict_refund_dates: false,
            support_contact: None,
            base_url: None,
        }
    }

    /// Days after a return started after which its shopper is reminded to send it. `None` if the merchant sends no
    /// reminders, or if the time to send a return is too short for one.
    pub fn reminder_days(&self) -> Option<u16> {
        let is_sent = self.mails.are_sent(MailEvent::AboutToExpire);
        let days = self.returns.send_within_days.saturating_sub(REMINDED_DAYS_BEFORE);
        (is_sent && days > 0).then_some(days)
    }

    /// The name of the merchant that shoppers see.
    pub fn portal_name(&self) -> &str {
        self.appearance.name.as_deref().unwrap_or(&self.name)
    }

    /// The options of shoppers, with the withdrawal from the contract if the portal offers it.
    pub fn return_options(&self) -> Cow<'_, ReturnPolicy> {
        if self.appearance.withdrawal {
            Cow::Owned(self.returns.with_withdrawal())
        } else {
            Cow::Borrowed(&self.returns)
        }
    }

    /// The options of shoppers for orders in a currency. Costs and bonus in another currency become zero,
    /// because there are no exchange rates.
    pub fn returns_in(&self, currency: &str) -> Cow<'_, ReturnPolicy> {
        if self.currency == currency {
            return Cow::Borrowed(&self.returns);
        }
        let mut returns = self.returns.clone();
        for offer in &mut returns.methods {
            offer.shipping_cost_cents = 0;
        }
        if let Some(card) = &mut returns.gift_card {
            card.bonus_credit_amount_cents = 0;
        }
        Cow::Owned(returns)
    }
}
