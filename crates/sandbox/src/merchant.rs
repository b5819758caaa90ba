//! One request to the merchant: find the endpoint, note the arrival, misbehave or answer.

use std::sync::PoisonError;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::Sandbox;
use crate::behaviour::{Act, Due};
use crate::interface::Interface;
use crate::journal::Arrival;
use crate::reply::{self, Line};
use crate::signature::{Claim, Verdict};
use crate::tokens::Tokens;
use domain::message_kind::MessageKind;

pub(crate) async fn answer(
    request: HttpRequest,
    body: web::Bytes,
    sandbox: web::Data<Sandbox>,
) -> HttpResponse {
    let path = request.path();
    let Some(interface) = Interface::of(path) else {
        return message(
            StatusCode::NOT_FOUND,
            "a merchant has no endpoint at this path; see GET /",
        );
    };
    if request.method().as_str() != interface.method() {
        return message(StatusCode::METHOD_NOT_ALLOWED, "this endpoint takes another method");
    }
    let signature = match interface {
        Interface::Message(_) => check_signature(&sandbox, &request, &body),
        Interface::Token | Interface::Variants { .. } => Verdict::Unchecked,
    };
    let due = sandbox.behaviours.next(path).filter(|due| !satisfied(due, &request));
    if let Some(due) = due {
        note(&sandbox, &request, &body, signature, || told(&due));
        return reply::misbehave(due.step, request.conn_data::<Line>()).await;
    }
    let refused =
        sandbox.signature_required && !matches!(signature, Verdict::Valid | Verdict::Unchecked);
    let (status, answer) = if refused {
        (StatusCode::BAD_REQUEST, json!({"message": "the signature does not fit"}))
    } else {
        usual(&sandbox, interface, &request, &body)
    };
    note(&sandbox, &request, &body, signature, || status.as_u16().to_string());
    HttpResponse::build(status).json(answer)
}

/// What a merchant who is well answers.
fn usual(
    sandbox: &Sandbox,
    interface: Interface<'_>,
    request: &HttpRequest,
    body: &[u8],
) -> (StatusCode, Value) {
    match interface {
        Interface::Token => {
            sandbox.tokens.issue(request.headers(), body, sandbox.clock.now().timestamp())
        }
        Interface::Variants { variant_identifier } => {
            let identifier = percent_decode_str(variant_identifier).decode_utf8_lossy();
            (StatusCode::OK, variants(&identifier))
        }
        Interface::Message(MessageKind::ExchangeOrder) => exchange_order(body),
        Interface::Message(_) => (StatusCode::OK, json!({"message": "received"})),
    }
}

/// The same original order always gets the same exchange order: placing it is idempotent.
fn exchange_order(body: &[u8]) -> (StatusCode, Value) {
    let order: Value = serde_json::from_slice(body).unwrap_or_default();
    match order.get("original_order_id") {
        Some(Value::String(original)) => {
            (StatusCode::OK, json!({"order_identifier": format!("EX-{original}")}))
        }
        _ => {
            let missing = json!({"field": "$.original_order_id", "code": "missing_field"});
            let answer = json!({"message": "the order is not valid", "errors": [missing]});
            (StatusCode::UNPROCESSABLE_ENTITY, answer)
        }
    }
}

/// Two variants to choose from and one that is sold out.
fn variants(identifier: &str) -> Value {
    let variant = |size: &str, in_stock: u32| {
        json!({
            "sku": format!("{identifier}-{size}"),
            "title": format!("{identifier}, size {size}"),
            "attributes": [{"name": "size", "value": size}],
            "unit_price_amount_cents": 2500,
            "quantity_in_stock": in_stock,
        })
    };
    json!([variant("S", 4), variant("M", 9), variant("L", 0)])
}

/// A request with a token newer than the rule has done what `expire_token` asks for.
fn satisfied(due: &Due, request: &HttpRequest) -> bool {
    due.step.act == Act::ExpireToken
        && Tokens::number(request.headers()).is_some_and(|number| number > due.tokens_before)
}

fn told(due: &Due) -> String {
    match due.step.act {
        Act::Answer => due.step.status.unwrap_or(200).to_string(),
        Act::Redirect => due.step.status.unwrap_or(302).to_string(),
        Act::ExpireToken => "401".to_owned(),
        Act::Hang => "hang".to_owned(),
        Act::Drip => "drip".to_owned(),
        Act::Reset => "reset".to_owned(),
        Act::Huge => "huge".to_owned(),
    }
}

fn check_signature(sandbox: &Sandbox, request: &HttpRequest, body: &[u8]) -> Verdict {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let claim = Claim {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    let secrets = sandbox.secrets.read().unwrap_or_else(PoisonError::into_inner);
    secrets.check(claim, body, sandbox.clock.now().timestamp())
}

fn note(
    sandbox: &Sandbox,
    request: &HttpRequest,
    body: &web::Bytes,
    signature: Verdict,
    answer: impl FnOnce() -> String,
) {
    sandbox.journal.note(|| Arrival {
        at: sandbox.clock.now(),
        method: request.method().to_string(),
        path: request.path().to_owned(),
        headers: shown_headers(request),
        body: shown_body(request.path(), body),
        signature,
        answer: answer(),
    });
}

/// Credentials are shown by their scheme only, except tokens the sandbox itself made up.
fn shown_headers(request: &HttpRequest) -> Vec<(String, String)> {
    let shown = |(name, value): (&actix_web::http::header::HeaderName, &[u8])| {
        let value = String::from_utf8_lossy(value).into_owned();
        let value = match value.split_once(' ') {
            Some((scheme, _))
                if name == "authorization" && Tokens::number(request.headers()).is_none() =>
            {
                format!("{scheme} …")
            }
            _ => value,
        };
        (name.to_string(), value)
    };
    request.headers().iter().map(|(name, value)| shown((name, value.as_bytes()))).collect()
}

/// A token request's body holds the client's secret.
fn shown_body(path: &str, body: &web::Bytes) -> web::Bytes {
    match Interface::of(path) {
        Some(Interface::Token) => web::Bytes::from_static(b"\"\xe2\x80\xa6\""),
        _ => body.clone(),
    }
}

pub(crate) fn message(status: StatusCode, text: &str) -> HttpResponse {
    HttpResponse::build(status).json(json!({"message": text}))
}
