//! The audit log: who changed what, for staff and for the merchant concerned.

mod sentence;

use actix_web::{HttpResponse, get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    text::Moment,
};
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use crate::{
    App,
    error::PageError,
    page::{Page, Section, html},
    person::SignedIn,
};

/// A record as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct AuditRecord {
    pub(crate) id: i64,
    created_at: DateTime<Utc>,
    pub(crate) actor: String,
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) subject: String,
    pub(crate) merchant: Option<String>,
    #[serde(default)]
    detail: Value,
}

#[derive(Deserialize)]
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

/// The filter. It is part of the URL.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct AuditFilter {
    pub(crate) merchant: String,
    pub(crate) after: String,
}

impl AuditList {
    pub(crate) async fn load(
        signed_in: &SignedIn,
        merchant: &str,
        after: &str,
    ) -> Result<Self, ApiError> {
        let query = [("merchant", merchant), ("after", after), ("limit", "50")];
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
async fn list_audit(
    app: web::Data<App>,
    signed_in: SignedIn,
    filter: web::Query<AuditFilter>,
) -> Result<HttpResponse, PageError> {
    let filter = filter.into_inner();
    let page = Page::new(&app, &signed_in, Section::Audit);
    let merchant = filter.merchant.trim();
    if !merchant.is_empty() {
        signed_in.merchant(merchant)?;
    }
    let list = AuditList::load(&signed_in, merchant, &filter.after).await?;
    let (records, next) = list.rows(&page);
    let older = next.map(|after| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !merchant.is_empty() {
            query.append_pair("merchant", merchant);
        }
        query.append_pair("after", &after);
        query.finish()
    });
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
