//! The cancellation of a return, with a page that asks first.

use actix_web::{HttpResponse, get, http::StatusCode, post, web};
use askama::Template;
use domain::returns::{RmaStatus, TransitionError};
use pages::{
    api::{ApiError, Service},
    path,
};
use reqwest::Method;
use serde::de::IgnoredAny;
use serde_json::json;

use super::{
    items::{Item, items},
    model::Return,
    return_url,
};
use crate::{
    App,
    error::PageError,
    page::{Page, html_with, redirect},
    visit::{Proven, Visit},
};

#[derive(Template)]
#[template(path = "cancel_return.html")]
struct CancelPage {
    page: Page,
    rma: Return,
    items: Vec<Item>,
    /// The id of the reason why it is too late.
    late_reason: Option<&'static str>,
    /// The path of the return's page.
    url: String,
}

#[get("/{merchant}/returns/{rma}/cancel")]
pub(super) async fn show_cancel(
    Proven(visit): Proven,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (_, name) = path.into_inner();
    let rma = Return::load(&visit, &name).await?;
    let late_reason = (!rma.is_cancelable).then(|| late_reason(&rma));
    show(&visit, rma, late_reason, StatusCode::OK)
}

#[post("/{merchant}/returns/{rma}/cancel")]
pub(super) async fn cancel(
    app: web::Data<App>,
    Proven(mut visit): Proven,
    path: web::Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (_, name) = path.into_inner();
    let merchant = Some(visit.merchant());
    let path = path!("v1", "returns", &name, "cancel");
    let canceled: Result<IgnoredAny, _> =
        visit.api.send_json(Service::RmaEngine, Method::POST, merchant, &path, &json!({})).await;
    match canceled {
        Ok(_) => {
            visit.shopper.forget(&name);
            visit.with_cookie(&app, redirect(&return_url(&visit, &name, "")))
        }
        // The result is unknown. The page that asks tells whether the return is canceled.
        Err(ApiError::Unavailable { .. }) => Ok(redirect(&return_url(&visit, &name, "/cancel"))),
        Err(ApiError::Conflict(refusal)) => {
            let rma = Return::load(&visit, &name).await?;
            let reason = refused(&refusal.message).unwrap_or_else(|| late_reason(&rma));
            show(&visit, rma, Some(reason), StatusCode::CONFLICT)
        }
        Err(error) => Err(error.into()),
    }
}

fn show(
    visit: &Visit,
    rma: Return,
    late_reason: Option<&'static str>,
    status: StatusCode,
) -> Result<HttpResponse, PageError> {
    let template = CancelPage {
        page: Page::new(visit, None),
        items: items(&rma),
        url: return_url(visit, &rma.rma_identifier, ""),
        rma,
        late_reason,
    };
    html_with(status, &template.page, &template)
}

/// The id of the reason in a refusal of rma-engine, whose message ends with the error.
fn refused(message: &str) -> Option<&'static str> {
    [
        (TransitionError::Canceled, "cancel-late-canceled"),
        (TransitionError::Declined, "cancel-late-declined"),
        (TransitionError::Refunded, "cancel-late-refunded"),
        (TransitionError::Scanned, "cancel-late-carrier"),
        (TransitionError::Received, "cancel-late-received"),
        (TransitionError::ExchangeInProgress, "cancel-late-exchange"),
    ]
    .into_iter()
    .find_map(|(error, text)| message.ends_with(&error.to_string()).then_some(text))
}

/// The id of the reason why a return cannot be canceled, from its state.
pub(super) fn late_reason(rma: &Return) -> &'static str {
    if rma.status == RmaStatus::Canceled {
        "cancel-late-canceled"
    } else if rma.is_declined() {
        "cancel-late-declined"
    } else if rma.active_units().any(|unit| unit.progress() > 0) {
        "cancel-late-carrier"
    } else if rma.status != RmaStatus::Created || rma.active_units().any(|unit| unit.is_refunded) {
        "cancel-late-refunded"
    } else if rma.active_units().any(|unit| unit.exchange_status.is_some()) {
        "cancel-late-exchange"
    } else {
        "cancel-late-received"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::model::tests::rma;
    use super::*;

    #[test]
    fn a_refusal_names_its_reason() {
        let message = format!("return RMA-1: {}", TransitionError::Scanned);
        assert_eq!(refused(&message), Some("cancel-late-carrier"));
        assert_eq!(refused("one of the units is in another return already"), None);
    }

    #[test]
    fn the_state_of_a_return_gives_the_reason_why_it_is_too_late() {
        let reason = |unit| late_reason(&rma(&[unit]));
        assert_eq!(reason(json!({ "package_tracking_status": "ACCEPTED" })), "cancel-late-carrier");
        assert_eq!(reason(json!({ "exchange_status": "pending" })), "cancel-late-exchange");
        assert_eq!(reason(json!({ "is_refunded": true })), "cancel-late-refunded");
        assert_eq!(reason(json!({})), "cancel-late-received");
        let mut canceled = rma(&[json!({})]);
        canceled.status = RmaStatus::Canceled;
        assert_eq!(late_reason(&canceled), "cancel-late-canceled");
        canceled.status = RmaStatus::Declined;
        assert_eq!(late_reason(&canceled), "cancel-late-declined");
    }
}
