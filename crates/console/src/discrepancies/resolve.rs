//! One discrepancy, and the form that resolves it with a note or assigns its refund to a return.

use std::slice;

use actix_web::{get, post, web};
use api::returns::RecordedDiscrepancy;
use askama::Template;
use pages::{
    api::{ApiError, Service},
    form::Field,
    path,
};
use reqwest::Method;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use super::{
    PATH, can_be_resolved, is_assignable, name_clients, order_link, return_link, url, url_of,
};
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn,
    error::sentence,
    html,
    record_list::{Records, load, words},
    rejected,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_discrepancy).service(resolve_discrepancy);
}

#[derive(Template)]
#[template(path = "discrepancy.html")]
struct DiscrepancyDetailsPage {
    page: Page,
    discrepancy: RecordedDiscrepancy,
    form: ResolveFields,
}

#[derive(Default)]
struct ResolveFields {
    note: Field,
    rma_identifier: Field,
    /// The reason why nothing was changed. The form then shows the note, also if another person resolved the
    /// discrepancy meanwhile.
    problem: Option<String>,
}

#[get("/merchants/{merchant}/discrepancies/{position}")]
async fn show_discrepancy(signed_in: SignedIn, path: web::Path<(String, i64)>) -> PageResult {
    let (merchant, position) = path.into_inner();
    let discrepancy = find(&signed_in, &merchant, position).await?;
    let page = signed_in.page(Section::Discrepancies);
    html(&DiscrepancyDetailsPage { page, discrepancy, form: ResolveFields::default() })
}

#[derive(Deserialize)]
struct ResolveForm {
    #[serde(default)]
    note: String,
    #[serde(default)]
    rma_identifier: String,
}

#[post("/merchants/{merchant}/discrepancies/{position}")]
async fn resolve_discrepancy(
    posted: Posted<ResolveForm>,
    path: web::Path<(String, i64)>,
) -> PageResult {
    let Posted { signed_in, form } = posted;
    let (merchant, position) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let resolve_path = path!("v1", "discrepancies", position.to_string(), "resolve");
    let resolved: Result<IgnoredAny, _> = signed_in
        .api
        .send_json(Service::RmaEngine, Method::POST, Some(own), &resolve_path, &form.body())
        .await;
    let mut fields = form.fields();
    match resolved {
        Ok(_) => return Ok(Notice::DiscrepancyResolved.redirect(&url(&merchant, position))),
        Err(ApiError::Conflict(body)) => fields.problem = Some(sentence(&body.message)),
        Err(ApiError::Invalid(body)) => {
            fields.note.error = body.field("$.note");
            fields.rma_identifier.error = body.field("$.rma_identifier");
            if fields.note.is_valid() && fields.rma_identifier.is_valid() {
                fields.problem = Some(sentence(&body.message));
            }
        }
        Err(ApiError::NotFound) if !form.rma_identifier.trim().is_empty() => {
            // The discrepancy exists if it can be shown, so the return does not.
            fields.rma_identifier.reject("there is no such return");
        }
        Err(error) => return Err(error.into()),
    }
    let discrepancy = find(&signed_in, &merchant, position).await?;
    let page = signed_in.page(Section::Discrepancies);
    rejected(&DiscrepancyDetailsPage { page, discrepancy, form: fields })
}

impl ResolveForm {
    fn body(&self) -> Value {
        let note = self.note.trim();
        let rma = self.rma_identifier.trim();
        if rma.is_empty() {
            json!({ "note": note })
        } else {
            json!({ "note": note, "rma_identifier": rma })
        }
    }

    fn fields(&self) -> ResolveFields {
        ResolveFields {
            note: Field::new(self.note.as_str()),
            rma_identifier: Field::new(self.rma_identifier.as_str()),
            problem: None,
        }
    }
}

/// Finds one discrepancy in the list, which is sorted by position, newest first.
async fn find(
    signed_in: &SignedIn,
    merchant: &str,
    position: i64,
) -> Result<RecordedDiscrepancy, PageError> {
    let own = signed_in.merchant(merchant)?;
    let after = position.saturating_add(1).to_string();
    let query = [("after", after.as_str()), ("limit", "1")];
    let list: Records<RecordedDiscrepancy> =
        load(signed_in, Service::RmaEngine, Some(own), PATH, &query).await?;
    let found = list.records.into_iter().find(|one| one.position == position);
    let mut found = found.ok_or(PageError::NotFound)?;
    name_clients(signed_in, slice::from_mut(&mut found)).await;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_is_sent_only_if_one_is_named() {
        let form = |rma: &str| ResolveForm { note: " ok ".into(), rma_identifier: rma.into() };
        assert_eq!(form(" ").body(), json!({ "note": "ok" }));
        assert_eq!(form("RMA-1").body(), json!({ "note": "ok", "rma_identifier": "RMA-1" }));
    }
}
