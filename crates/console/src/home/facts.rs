//! Facts about a merchant, as the services describe them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use pages::api::Part;
use serde::{Deserialize, de::IgnoredAny};

/// The facts that decide which steps of the onboarding are done.
pub(super) struct Facts {
    pub(super) merchant: Part<MerchantView>,
    pub(super) clients: Part<ClientList>,
    pub(super) orders: Part<OrderSummary>,
    pub(super) returns: Part<ReturnList>,
}

#[derive(Debug, Deserialize)]
pub(super) struct MerchantView {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) time_zone: String,
    #[serde(default)]
    pub(super) endpoints: BTreeMap<String, IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ClientList {
    #[serde(default)]
    clients: Vec<Client>,
}

#[derive(Debug, Deserialize)]
struct Client {
    #[serde(default)]
    last_used_at: Option<DateTime<Utc>>,
    #[serde(default)]
    revoked_at: Option<DateTime<Utc>>,
}

impl ClientList {
    /// Whether there is a client that can get a token.
    pub(super) fn has_client(&self) -> bool {
        self.clients.iter().any(|client| client.revoked_at.is_none())
    }

    pub(super) fn last_used_at(&self) -> Option<DateTime<Utc>> {
        self.clients.iter().filter_map(|client| client.last_used_at).max()
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct OrderSummary {
    #[serde(default)]
    pub(super) count: u64,
    /// The times of the orders themselves, not of their arrival.
    #[serde(default)]
    pub(super) created_at: Option<TimeSpan>,
    #[serde(default)]
    pub(super) rejections: Vec<Rejection>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TimeSpan {
    pub(super) oldest: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rejection {
    pub(super) rejected_at: DateTime<Utc>,
    #[serde(default)]
    pub(super) order_identifier: Option<String>,
    #[serde(default)]
    errors: Vec<RejectionError>,
}

#[derive(Debug, Deserialize)]
struct RejectionError {
    field: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    detail: Option<String>,
}

impl Rejection {
    /// The first error: "$.currency: unknown currency".
    pub(super) fn reason(&self) -> Option<String> {
        let error = self.errors.first()?;
        Some(format!("{}: {}", error.field, error.detail.as_ref().unwrap_or(&error.code)))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ReturnList {
    #[serde(default)]
    pub(super) returns: Vec<IgnoredAny>,
}
