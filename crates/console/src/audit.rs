//! The audit log: who changed what, for staff and for the merchant concerned.

mod filter;
mod sentence;

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    text::Moment,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{Page, PageResult, Section, SignedIn, html};

pub(crate) use filter::AuditFilter;

/// A record as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AuditRecord {
    pub(crate) id: i64,
    created_at: DateTime<Utc>,
    pub(crate) actor: String,
    /// The name of the client that is the actor.
    pub(crate) actor_name: Option<String>,
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) subject: String,
    pub(crate) merchant: Option<String>,
    #[serde(default)]
    detail: Value,
}

/// Actions that the form suggests.
pub(crate) const ACTIONS: [&str; 24] = [
    "client.created",
    "client.revoked",
    "client.secret_rotated",
    "endpoint.deleted",
    "endpoint.paused",
    "endpoint.resumed",
    "endpoint.secret_rotated",
    "endpoint.set",
    "merchant.created",
    "merchant.updated",
    "password.changed",
    "password.refused",
    "person.accepted",
    "person.disabled",
    "person.enabled",
    "person.invitation_renewed",
    "person.invited",
    "person.linked",
    "person.updated",
    "recovery_codes.replaced",
    "session.ended",
    "session.started",
    "token.revoked",
    "totp.changed",
];

#[derive(Default, Deserialize)]
pub(crate) struct AuditList {
    records: Vec<AuditRecord>,
    next: Option<String>,
}

/// A row of the list.
pub(crate) struct AuditRow {
    pub(crate) at: Moment,
    pub(crate) sentence: String,
    pub(crate) record: AuditRecord,
    /// The detail with line breaks; empty if there is none.
    pub(crate) detail: String,
}

impl AuditList {
    /// Loads a page of the records that match. An invalid filter matches none.
    pub(crate) async fn load(signed_in: &SignedIn, filter: &AuditFilter) -> Result<Self, ApiError> {
        if !filter.is_valid() {
            return Ok(Self::default());
        }
        let request = filter.request();
        let query = request.each_ref().map(|(name, value)| (*name, value.as_str()));
        signed_in.api.get(Service::Auth, "v1/audit", &query).await
    }

    /// The rows, and the cursor of the next page.
    pub(crate) fn rows(self, page: &Page) -> (Vec<AuditRow>, Option<String>) {
        let row = |record: AuditRecord| AuditRow {
            at: page.moment(record.created_at),
            sentence: sentence::of(&record),
            detail: detail(&record.detail),
            record,
        };
        (self.records.into_iter().map(row).collect(), self.next)
    }
}

fn detail(detail: &Value) -> String {
    match detail {
        Value::Null => String::new(),
        Value::Object(fields) if fields.is_empty() => String::new(),
        detail => serde_json::to_string_pretty(detail).unwrap_or_default(),
    }
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    page: Page,
    filter: AuditFilter,
    records: Vec<AuditRow>,
    /// The query of the next page.
    older: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_audit);
}

#[get("/audit")]
async fn list_audit(signed_in: SignedIn, filter: web::Query<AuditFilter>) -> PageResult {
    let filter = filter.into_inner().trimmed().in_zone(signed_in.zone.name());
    let page = signed_in.page(Section::Audit);
    if !filter.merchant.is_empty() {
        signed_in.merchant(&filter.merchant)?;
    }
    let (records, next) = AuditList::load(&signed_in, &filter).await?.rows(&page);
    let older = next.map(|after| filter.older(&after));
    html(&AuditPage { page, filter, records, older })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_empty_detail_is_not_shown() {
        assert_eq!(detail(&json!({})), "");
        assert_eq!(detail(&json!({ "a": 1 })), "{\n  \"a\": 1\n}");
    }
}
