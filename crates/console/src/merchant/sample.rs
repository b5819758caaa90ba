//! Sends a sample to an endpoint and shows the request and the response.

use std::time::Duration;

use actix_web::{post, web};
use api::delivery::{EndpointCheck, EndpointCheckResult};
use askama::Template;
use chrono::TimeDelta;
use domain::merchant::Interface;
use futures_util::future::join;
use pages::{path, text::Span};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use url::form_urlencoded;

use super::{
    Frame, Merchant, Tab,
    endpoints::{interface_of, service_of, title},
    page, require_manage,
    set_endpoint::EndpointPath,
};
use crate::{Page, PageError, PageResult, Posted, error::sentence, html, record_list::indented};

/// The service waits for the endpoint up to half of its own time for a request.
const DEADLINE: Duration = Duration::from_secs(25);

fn explain(result: &EndpointCheckResult) -> String {
    let after = Duration::from_millis(result.latency_ms);
    let after = Span(TimeDelta::from_std(after).unwrap_or(TimeDelta::MAX));
    match (result.outcome.as_str(), result.status) {
        ("not_set", _) => "The merchant has no such endpoint yet.".to_owned(),
        (_, Some(status)) if result.accepted => {
            format!("Accepted with {status} after {after}.")
        }
        (_, Some(status)) => {
            format!("Not accepted: response {status} after {after}. {}", sentence(&result.detail))
        }
        (_, None) => format!("Not accepted. {}", sentence(&result.detail)),
    }
}

#[derive(Template)]
#[template(path = "merchant_sample.html")]
struct SamplePage {
    page: Page,
    merchant: Frame,
    interface: Interface,
    title: &'static str,
    sku: String,
    result: EndpointCheckResult,
    sentence: String,
    /// The bodies with line breaks.
    request_body: String,
    response_body: String,
}

#[derive(Deserialize)]
struct SampleForm {
    #[serde(default)]
    sku: String,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(send_sample);
}

#[post("/merchants/{merchant}/endpoints/{interface}/sample")]
async fn send_sample(posted: Posted<SampleForm>, path: EndpointPath) -> PageResult {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let interface = interface_of(&path.1)?;
    let id = signed_in.merchant(&path.0)?;
    let sku = form.sku.trim().to_owned();
    let url = check_url(id, interface, &sku);
    let api = signed_in.api.clone().with_deadline(DEADLINE);
    let body = json!({});
    let (found, check) = join(
        Merchant::load(&signed_in, id),
        api.send_json::<EndpointCheck>(service_of(interface), Method::POST, None, &url, &body),
    )
    .await;
    let found = found?;
    let check = check?;
    let result = check.results.into_iter().find(|result| result.kind == interface.name());
    let result = result.ok_or(PageError::NotFound)?;
    html(&SamplePage {
        page: page(&signed_in),
        merchant: Frame::new(&signed_in.person, &found, Tab::Endpoints),
        interface,
        title: title(interface),
        sku,
        request_body: indented(&result.request_body),
        response_body: indented(&result.response_body),
        sentence: explain(&result),
        result,
    })
}

/// The check of one interface. The product matters only for variants.
fn check_url(merchant: &str, interface: Interface, sku: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("kind", interface.name());
    if interface == Interface::Variants && !sku.is_empty() {
        query.append_pair("sku", sku);
    }
    format!("{}?{}", path!("v1", "endpoints", merchant, "check"), query.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_sample_is_one_sentence() {
        let result = EndpointCheckResult { latency_ms: 212, ..EndpointCheckResult::default() };
        let accepted = EndpointCheckResult { accepted: true, status: Some(200), ..result.clone() };
        assert_eq!(explain(&accepted), "Accepted with 200 after 212 ms.");
        let detail = "the response is 503".to_owned();
        let rejected = EndpointCheckResult { status: Some(503), detail, ..result.clone() };
        assert_eq!(
            explain(&rejected),
            "Not accepted: response 503 after 212 ms. The response is 503."
        );
        let detail = "timed out after 5 s".to_owned();
        assert_eq!(
            explain(&EndpointCheckResult { detail, ..result }),
            "Not accepted. Timed out after 5 s."
        );
    }

    #[test]
    fn only_one_interface_is_checked() {
        let rma = "rma".parse().unwrap();
        assert_eq!(check_url("acme", rma, "x"), "v1/endpoints/acme/check?kind=rma");
        assert_eq!(
            check_url("acme", Interface::Variants, "A B"),
            "v1/endpoints/acme/check?kind=exchange-variants&sku=A+B"
        );
    }
}
