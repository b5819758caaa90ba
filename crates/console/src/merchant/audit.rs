//! The audit log of a merchant.

use actix_web::{get, web};
use askama::Template;

use super::{Frame, Merchant, Tab, page_of};
use crate::{
    Page, PageResult, SignedIn,
    audit::{AuditFilter, AuditList, AuditRow},
    html,
};

#[derive(Template)]
#[template(path = "merchant_audit.html")]
struct AuditPage {
    page: Page,
    merchant: Frame,
    filter: AuditFilter,
    records: Vec<AuditRow>,
    /// The query of the next page.
    older: Option<String>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_audit);
}

#[get("/merchants/{merchant}/audit")]
async fn list_audit(
    signed_in: SignedIn,
    merchant: web::Path<String>,
    filter: web::Query<AuditFilter>,
) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    let mut filter = filter.into_inner().trimmed();
    id.clone_into(&mut filter.merchant);
    let found = Merchant::load(&signed_in, id).await?;
    let filter = filter.in_zone(&found.settings.time_zone);
    let list = AuditList::load(&signed_in, &filter).await?;
    let page = page_of(&signed_in, &found);
    let (records, next) = list.rows(&page);
    let older = next.map(|after| filter.older(&after));
    let merchant = Frame::new(&signed_in.person, &found, Tab::Audit);
    html(&AuditPage { page, merchant, filter, records, older })
}
