//! The audit log of a merchant.

use actix_web::{get, web};
use askama::Template;
use pages::form::Fields;

use super::{Frame, Merchant, Tab, page_of};
use crate::{
    Page, PageResult, SignedIn,
    audit::{AuditRecord, load_records, read_filter},
    filter::Filter,
    html,
    record_list::Records,
};

#[derive(Template)]
#[template(path = "merchant_audit.html")]
struct AuditPage {
    page: Page,
    merchant: Frame,
    filter: Filter,
    records: Vec<AuditRecord>,
    older: Option<String>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_audit);
}

#[get("/merchants/{merchant}/audit")]
async fn list_audit(
    signed_in: SignedIn,
    merchant: web::Path<String>,
    query: web::Query<Fields>,
) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    let found = Merchant::load(&signed_in, id).await?;
    let filter = read_filter(&signed_in, format!("/merchants/{id}/audit"), &query);
    let filter = filter.of_merchant(id);
    let Records { records, next: older } = load_records(&signed_in, &filter).await?;
    let page = page_of(&signed_in, &found);
    let merchant = Frame::new(&signed_in.person, &found, Tab::Audit);
    html(&AuditPage { page, merchant, filter, records, older })
}
