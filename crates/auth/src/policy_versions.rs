//! The rules of a merchant for returns after each change.

use chrono::{DateTime, Utc};
use domain::merchant::Rule;
use serde::Serialize;
use utoipa::ToSchema;

/// The rules of a merchant after a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyVersion {
    /// The `version` of the merchant after the change.
    pub(crate) version: i64,
    pub(crate) created_at: DateTime<Utc>,
    /// Id of the client, or e-mail address of the person, that made the change.
    pub(crate) actor: String,
    /// The rules without the lists of shoppers, of which no earlier versions are kept.
    pub(crate) rules: Vec<Rule>,
}

/// A version with the name of the client that made the change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyVersionView {
    #[serde(flatten)]
    pub(crate) version: PolicyVersion,
    /// The name of the client, if a client made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) actor_name: Option<String>,
}

/// A page of versions, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyVersionPage {
    pub(crate) versions: Vec<PolicyVersionView>,
    /// Value of `after` for the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) next: Option<String>,
}
