//! The audit log: every change with its author.

use chrono::{DateTime, Utc};
use diesel::Queryable;
use domain::access::MerchantId;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// One record of the audit log.
#[derive(Debug, Serialize, Queryable, ToSchema)]
pub(crate) struct AuditRecord {
    pub(crate) id: i64,
    created_at: DateTime<Utc>,
    /// Id of the client, or e-mail address of the person, that made the change.
    pub(crate) actor: String,
    #[schema(example = "merchant.updated")]
    action: String,
    #[schema(example = "merchant/acme")]
    subject: String,
    merchant: Option<String>,
    /// The requested change, without secrets.
    detail: Value,
}

/// A record with the name of the client that made the change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditRecordView {
    #[serde(flatten)]
    pub(crate) record: AuditRecord,
    /// The name of the client, if a client made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) actor_name: Option<String>,
}

/// A page of audit records, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditPage {
    pub(crate) records: Vec<AuditRecordView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A record to be written in the transaction that makes the change.
pub(crate) struct NewAuditRecord<'a> {
    pub(crate) actor: &'a str,
    pub(crate) action: &'static str,
    pub(crate) subject: String,
    pub(crate) merchant: Option<&'a MerchantId>,
    pub(crate) detail: Value,
}
