//! The page that shows every amount of the return, and its confirmation.
//!
//! The form holds the sealed request, the quote that the shopper saw and an idempotency key. The same form
//! sent twice is the same request, so it leads to the same return.

mod changes;
mod comments;
mod confirmed;
mod quote;
mod request;
mod summary;
mod view;

use actix_web::{HttpResponse, http::StatusCode, web};
use pages::api::{ApiError, ErrorBody};
use platform::http::Sequential;
use uuid::Uuid;

#[cfg(test)]
pub(crate) use self::request::tests;
use self::view::{AgainPage, Check, ConfirmForm};
pub(crate) use self::{
    changes::{Changed, Conflict},
    request::Request,
    summary::amounts,
    view::is_email,
};
use crate::{
    App, basket, choose,
    draft::ReturnDraft,
    error::PageError,
    method,
    page::{Page, Step, html_with, redirect},
    resolution::{self, is_gift},
    returns::return_url,
    sent::Sent,
    visit::{Proven, Visit},
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(
        web::resource("/{merchant}/check")
            .route(web::get().to(show_check))
            .route(web::post().to(send_check)),
    );
}

/// A confirmation, or choices that do not fit into a URL.
async fn send_check(
    app: web::Data<App>,
    step: Sequential<Proven, Sent>,
) -> Result<HttpResponse, PageError> {
    let Sequential(Proven(visit), sent) = &step;
    if sent.fields.has("request") {
        Box::pin(confirm(&app, visit, sent)).await
    } else {
        Box::pin(show_check(app, step)).await
    }
}

async fn show_check(
    app: web::Data<App>,
    Sequential(Proven(visit), sent): Sequential<Proven, Sent>,
) -> Result<HttpResponse, PageError> {
    let draft = sent.draft;
    if draft.choices.is_empty() {
        return Ok(redirect(&visit.url("/choose")));
    }
    let items = basket::load(&visit, &draft).await;
    if let Some(rma) = visit.shopper.confirmed(draft.digest())
        && sent.fields.text("more") != rma
        && !confirmed::is_canceled(&visit, rma).await
    {
        return confirmed::show(&visit, &draft, rma, matches!(items, Ok(Some(_))));
    }
    let Some(items) = items? else {
        return choose::show_again(&visit, &draft).await;
    };
    if !method::is_chosen(&visit, &draft, &items) {
        return method::show_again(&visit, &draft, &items);
    }
    let Some(request) = Request::new(&visit, &draft, &items, is_gift(&visit)).await? else {
        return resolution::show_again(&visit, &draft, &items).await;
    };
    match request.quote(&visit).await {
        Ok(quote) => Check::new(&app, &visit, &draft, request, quote).show(StatusCode::OK),
        Err(ApiError::Invalid(body)) if is_order_mismatch(&body) => {
            choose::show_mismatch(&visit, &draft).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the request was rejected because its orders cannot be in one return.
fn is_order_mismatch(body: &ErrorBody) -> bool {
    body.errors.iter().any(|error| error.field.ends_with(".order_identifier"))
}

async fn confirm(app: &App, visit: &Visit, sent: &Sent) -> Result<HttpResponse, PageError> {
    let fields = &sent.fields;
    let request = Request::open(app, visit, fields.text("request"))?.with_comments(fields);
    let key = Uuid::parse_str(fields.text("key")).map_err(|_not_ours| PageError::BadForm)?;
    let quote = fields.text("quote");
    let email = fields.text("giftee_email");
    let is_email_wrong = request.is_gift && !is_email(email);
    if is_email_wrong || request.has_long_comment() {
        let quote = request.quote(visit).await?;
        let check = Check::new(app, visit, &sent.draft, request, quote);
        return check.with_email(email, is_email_wrong).show(StatusCode::UNPROCESSABLE_ENTITY);
    }
    match request.send(visit, quote, email, key).await {
        Ok(created) => {
            let mut visit = visit.clone();
            visit.shopper.remember(sent.draft.digest(), &created.rma_identifier);
            let next = return_url(&visit, &created.rma_identifier, "?new=1");
            visit.with_cookie(app, redirect(&next))
        }
        Err(ApiError::Unavailable { .. }) => {
            let form = ConfirmForm::new(visit, &sent.draft, fields.text("request"), quote, key);
            let email = request.is_gift.then(|| email.to_owned());
            let comments = request.comment_fields();
            let page = Page::new(visit, Some(Step::Check));
            let page = AgainPage { page, form, email, comments };
            html_with(StatusCode::SERVICE_UNAVAILABLE, &page.page, &page)
        }
        Err(ApiError::Conflict(body) | ApiError::Invalid(body)) => {
            show_changes(app, visit, &sent.draft, request, email, &body).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Shows the differences from the quote, and asks again with the current one.
async fn show_changes(
    app: &App,
    visit: &Visit,
    draft: &ReturnDraft,
    request: Request,
    email: &str,
    body: &ErrorBody,
) -> Result<HttpResponse, PageError> {
    let conflict = Conflict::of(body);
    let (changes, quote) = match conflict {
        Some(conflict) => (conflict.changes, conflict.quote),
        None => (Vec::new(), request.quote(visit).await?),
    };
    let is_email_wrong = body.field("$.giftee_email").is_some();
    let mut check = Check::new(app, visit, draft, request, quote);
    check.changed = Changed::new(&check.page, &changes, &check.quote);
    if changes.is_empty() && check.quote.possible && !is_email_wrong {
        check.note = Some(check.page.t("check-again"));
    }
    check.with_email(email, is_email_wrong).show(StatusCode::CONFLICT)
}
