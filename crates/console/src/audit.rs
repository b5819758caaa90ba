//! The audit log: who changed what, for staff and for the merchant concerned.

mod sentence;

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    form::Fields,
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    Page, PageResult, Section, SignedIn,
    filter::{Condition, Filter, Kind},
    html,
    record_list::{PAGE, Records},
};

/// A record as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AuditRecord {
    pub(crate) id: i64,
    pub(crate) created_at: DateTime<Utc>,
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
const ACTIONS: &[&str] = &[
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
    "person.invitation_refused",
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

const TIME: Kind = Kind::Time("Write a time like 2026-11-16T08:30.");

/// The conditions of the filter. The page of a merchant has no field for the merchant.
const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT.sent_as("merchant"),
    Condition::new("actor", "By", Kind::Text("E-mail address or client id")),
    Condition::new("action", "Action", Kind::Suggested("endpoint.set", ACTIONS)),
    Condition::new("from", "From", TIME),
    Condition::new("to", "Before", TIME),
];

/// The filter of a page.
pub(crate) fn read_filter(signed_in: &SignedIn, path: String, query: &Fields) -> Filter {
    Filter::read(signed_in, path, CONDITIONS, query).with_cursor_of::<i64>()
}

/// Loads a page of the records that match. An invalid filter matches none.
pub(crate) async fn load_records(
    signed_in: &SignedIn,
    filter: &Filter,
) -> Result<Records<AuditRecord>, ApiError> {
    if !filter.is_valid() {
        return Ok(Records::default());
    }
    let conditions = filter.request();
    let conditions = conditions.iter().map(|(name, value)| (*name, value.as_str()));
    let page = [("after", filter.after.as_str()), ("limit", PAGE)];
    let query: Vec<_> = conditions.chain(page).collect();
    signed_in.api.get(Service::Auth, "v1/audit", &query).await
}

impl AuditRecord {
    pub(crate) fn sentence(&self) -> String {
        sentence::of(self)
    }

    /// The detail with line breaks; empty if there is none.
    pub(crate) fn details(&self) -> String {
        detail(&self.detail)
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
    filter: Filter,
    records: Vec<AuditRecord>,
    older: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_audit);
}

#[get("/audit")]
async fn list_audit(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let filter = read_filter(&signed_in, "/audit".to_owned(), &query);
    if !filter.value("merchant").is_empty() {
        signed_in.merchant(filter.value("merchant"))?;
    }
    let Records { records, next: older } = load_records(&signed_in, &filter).await?;
    html(&AuditPage { page: signed_in.page(Section::Audit), filter, records, older })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn an_empty_detail_is_not_shown() {
        assert_eq!(detail(&json!({})), "");
        assert_eq!(detail(&json!({ "a": 1 })), "{\n  \"a\": 1\n}");
    }

    #[test]
    fn a_cursor_that_cannot_be_read_leads_to_the_first_page() {
        let signed_in = fixtures::signed_in("operator", None, &json!({}));
        let query = [("after".to_owned(), "abc".to_owned())].into_iter().collect();
        assert_eq!(read_filter(&signed_in, "/audit".to_owned(), &query).after, "");
    }
}
