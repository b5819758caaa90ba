//! Facts about a merchant, as the services describe them.

use std::collections::BTreeMap;

use api::orders::{OrderSummary, RejectedOrder};
use chrono::{DateTime, Utc};
use pages::api::Part;
use serde::{Deserialize, de::IgnoredAny};

use crate::record_list::Records;

/// The facts that decide which steps of the onboarding are done.
pub(super) struct Facts {
    pub(super) merchant: Part<MerchantView>,
    pub(super) clients: Part<ClientList>,
    pub(super) orders: Part<OrderSummary>,
    pub(super) returns: Part<Records<IgnoredAny>>,
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

/// The first reason why an order was rejected.
pub(super) fn reason(rejected: &RejectedOrder) -> Option<String> {
    let error = rejected.errors.first()?;
    let detail = error.detail.clone().unwrap_or_else(|| error.code.to_string());
    Some(format!("{}: {detail}", error.field))
}
