//! The page of choices that the shopper confirmed already: Back, or the same items once more.

use actix_web::HttpResponse;
use askama::Template;
use domain::returns::RmaStatus;

use crate::{
    draft::ReturnDraft,
    error::PageError,
    page::{Page, Step, html},
    returns::{Return, return_url},
    visit::Visit,
};

#[derive(Template)]
#[template(path = "confirmed.html")]
struct ConfirmedPage {
    page: Page,
    rma: String,
    url: String,
    /// Whether more units of the lines can be returned.
    is_possible: bool,
    form_method: &'static str,
    hidden: Vec<(&'static str, String)>,
}

/// Whether a confirmed return was canceled since, for example by the shop, or declined. Its items can then be chosen again. An
/// unknown state counts as not canceled.
pub(super) async fn is_canceled(visit: &Visit, rma: &str) -> bool {
    let found = Return::load(visit, rma).await;
    found.is_ok_and(|found| matches!(found.status, RmaStatus::Canceled | RmaStatus::Declined))
}

/// Shows the return of these choices, and asks before it leads to one more. The confirmation names the return: after
/// another one, Back asks again.
pub(super) fn show(
    visit: &Visit,
    draft: &ReturnDraft,
    rma: &str,
    is_possible: bool,
) -> Result<HttpResponse, PageError> {
    let template = ConfirmedPage {
        page: Page::new(visit, Some(Step::Check)),
        rma: rma.to_owned(),
        url: return_url(visit, rma, ""),
        is_possible,
        form_method: if draft.is_long() { "post" } else { "get" },
        hidden: draft.fields(),
    };
    html(&template.page, &template)
}
