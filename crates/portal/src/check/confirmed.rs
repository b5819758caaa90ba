//! The page of choices that the shopper confirmed already: Back, or the same items once more.

use actix_web::HttpResponse;
use askama::Template;

use crate::{
    draft::ReturnDraft,
    error::PageError,
    page::{Page, Step, html},
    returns::return_url,
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
