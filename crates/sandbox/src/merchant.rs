//! The merchant's endpoints: record the request, then run a step of a rule or respond normally.

use std::sync::PoisonError;

use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use percent_encoding::percent_decode_str;
use platform::http::Body;
use serde_json::{Value, json};

use crate::Sandbox;
use crate::behaviour::{Action, DueStep};
use crate::catalogue::{public_url, variants};
use crate::interface::Interface;
use crate::journal::ReceivedRequest;
use crate::label::label;
use crate::response::{self, ConnectionHandle, message};
use crate::signature::{SignatureHeaders, SignatureStatus};
use crate::tokens::Tokens;
use domain::message_kind::MessageKind;

pub(crate) async fn respond(
    request: HttpRequest,
    Body(body): Body,
    sandbox: web::Data<Sandbox>,
) -> HttpResponse {
    let path = request.path();
    let Some(interface) = Interface::for_path(path) else {
        return message(StatusCode::NOT_FOUND, "there is no endpoint at this path: see GET /");
    };
    if request.method().as_str() != interface.method() {
        return message(StatusCode::METHOD_NOT_ALLOWED, "this endpoint has another method");
    }
    let signature = match interface {
        Interface::Message(_) => check_signature(&sandbox, &request, &body),
        Interface::Token | Interface::Variants { .. } => SignatureStatus::Unchecked,
    };
    let due = sandbox.behaviours.next(path).filter(|due| !has_newer_token(due, &request));
    if let Some(due) = due {
        record(&sandbox, &request, &body, signature, || step_response(&due));
        return response::run_step(due.step, request.conn_data::<ConnectionHandle>()).await;
    }
    let is_rejected = sandbox.signature_required
        && !matches!(signature, SignatureStatus::Valid | SignatureStatus::Unchecked);
    let (status, response) = if is_rejected {
        (StatusCode::BAD_REQUEST, json!({"message": "the signature is invalid"}))
    } else {
        default_response(&sandbox, interface, &request, &body)
    };
    record(&sandbox, &request, &body, signature, || status.as_u16().to_string());
    HttpResponse::build(status).json(response)
}

/// The response of a merchant without failures.
fn default_response(
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
            (StatusCode::OK, variants(&identifier, &public_url(sandbox, request)))
        }
        Interface::Message(MessageKind::ExchangeOrder) => exchange_order(body),
        Interface::Message(MessageKind::LabelRequest) => label(body),
        Interface::Message(_) => (StatusCode::OK, json!({"message": "received"})),
    }
}

/// Exchange orders are idempotent: the identifier depends only on the original order.
fn exchange_order(body: &[u8]) -> (StatusCode, Value) {
    let order: Value = serde_json::from_slice(body).unwrap_or_default();
    match order.get("original_order_id") {
        Some(Value::String(original)) => {
            (StatusCode::OK, json!({"order_identifier": format!("EX-{original}")}))
        }
        _ => {
            let missing = json!({"field": "$.original_order_id", "code": "missing_field"});
            let response = json!({"message": "the order is not valid", "errors": [missing]});
            (StatusCode::UNPROCESSABLE_ENTITY, response)
        }
    }
}

/// Whether an `expire_token` step is fulfilled: the token was issued after the rule was set.
fn has_newer_token(due: &DueStep, request: &HttpRequest) -> bool {
    due.step.action == Action::ExpireToken
        && Tokens::number(request.headers()).is_some_and(|number| number > due.tokens_before)
}

/// The journal's text for the response of a step.
fn step_response(due: &DueStep) -> String {
    match due.step.action {
        Action::Respond => due.step.status.unwrap_or(200).to_string(),
        Action::Redirect => due.step.status.unwrap_or(302).to_string(),
        Action::ExpireToken => "401".to_owned(),
        Action::Hang => "hang".to_owned(),
        Action::Drip => "drip".to_owned(),
        Action::Reset => "reset".to_owned(),
        Action::Huge => "huge".to_owned(),
    }
}

fn check_signature(sandbox: &Sandbox, request: &HttpRequest, body: &[u8]) -> SignatureStatus {
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    let headers = SignatureHeaders {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    let secrets = sandbox.secrets.read().unwrap_or_else(PoisonError::into_inner);
    secrets.check(headers, body, sandbox.clock.now().timestamp())
}

fn record(
    sandbox: &Sandbox,
    request: &HttpRequest,
    body: &web::Bytes,
    signature: SignatureStatus,
    response: impl FnOnce() -> String,
) {
    sandbox.journal.record(|| ReceivedRequest {
        at: sandbox.clock.now(),
        method: request.method().to_string(),
        path: request.path().to_owned(),
        headers: redacted_headers(request),
        body: redacted_body(request.path(), body),
        signature,
        response: response(),
    });
}

/// The headers without credentials, except tokens that the sandbox issued.
fn redacted_headers(request: &HttpRequest) -> Vec<(String, String)> {
    let redact = |(name, value): (&actix_web::http::header::HeaderName, &[u8])| {
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
    request.headers().iter().map(|(name, value)| redact((name, value.as_bytes()))).collect()
}

/// The body, except that of a token request, which contains a secret.
fn redacted_body(path: &str, body: &web::Bytes) -> web::Bytes {
    match Interface::for_path(path) {
        Some(Interface::Token) => web::Bytes::from_static(b"\"\xe2\x80\xa6\""),
        _ => body.clone(),
    }
}
