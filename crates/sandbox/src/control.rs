//! The control API of the sandbox, beside the merchant's endpoints.

use std::sync::PoisonError;

use actix_web::error::{Error, InternalError, QueryPayloadError};
use actix_web::http::StatusCode;
use actix_web::{HttpRequest, HttpResponse, web};
use platform::http::Body;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;

use crate::Sandbox;
use crate::behaviour::Rule;
use crate::journal::Filter;
use crate::response::message;
use crate::signature::Secrets;

const INDEX: &str = include_str!("index.txt");

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.route("/", web::get().to(index))
        .route("/healthz", web::get().to(healthy))
        .route("/readyz", web::get().to(healthy))
        .route("/journal", web::get().to(show_journal))
        .route("/journal", web::delete().to(clear_journal))
        .route("/behaviour", web::get().to(list_behaviours))
        .route("/behaviour", web::put().to(set_behaviour))
        .route("/behaviour", web::delete().to(remove_behaviour))
        .route("/secrets", web::put().to(set_secrets))
        .route("/tokens", web::get().to(count_tokens));
}

async fn index() -> &'static str {
    INDEX
}

async fn healthy() -> HttpResponse {
    HttpResponse::Ok().json(json!({"status": "ok"}))
}

async fn show_journal(sandbox: web::Data<Sandbox>, filter: web::Query<Filter>) -> HttpResponse {
    HttpResponse::Ok().json(sandbox.journal.page(&filter))
}

async fn clear_journal(sandbox: web::Data<Sandbox>) -> HttpResponse {
    sandbox.journal.clear();
    HttpResponse::NoContent().finish()
}

async fn list_behaviours(sandbox: web::Data<Sandbox>) -> HttpResponse {
    HttpResponse::Ok().json(sandbox.behaviours.list())
}

async fn set_behaviour(sandbox: web::Data<Sandbox>, body: Body) -> HttpResponse {
    let rule: Rule = match parse(&body) {
        Ok(rule) => rule,
        Err(error) => return message(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    if let Err(error) = rule.check() {
        return message(StatusCode::BAD_REQUEST, &error);
    }
    sandbox.behaviours.set(rule, sandbox.tokens.issued());
    HttpResponse::NoContent().finish()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleQuery {
    path: Option<String>,
}

async fn remove_behaviour(
    sandbox: web::Data<Sandbox>,
    query: web::Query<RuleQuery>,
) -> HttpResponse {
    sandbox.behaviours.remove(query.path.as_deref());
    HttpResponse::NoContent().finish()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewSecrets {
    secrets: Vec<String>,
}

async fn set_secrets(sandbox: web::Data<Sandbox>, body: Body) -> HttpResponse {
    let new: NewSecrets = match parse(&body) {
        Ok(new) => new,
        Err(error) => return message(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    match Secrets::parse(new.secrets.iter().map(String::as_str)) {
        Ok(secrets) => {
            *sandbox.secrets.write().unwrap_or_else(PoisonError::into_inner) = secrets;
            HttpResponse::NoContent().finish()
        }
        Err(error) => message(StatusCode::BAD_REQUEST, &format!("a secret is invalid: {error}")),
    }
}

async fn count_tokens(sandbox: web::Data<Sandbox>) -> HttpResponse {
    HttpResponse::Ok().json(json!({"issued": sandbox.tokens.issued()}))
}

/// Reads JSON with any content type, so that `curl -d` works.
fn parse<T: DeserializeOwned>(Body(body): &Body) -> serde_json::Result<T> {
    serde_json::from_slice(body)
}

pub(crate) fn invalid_query(error: QueryPayloadError, _: &HttpRequest) -> Error {
    let response = message(StatusCode::BAD_REQUEST, &error.to_string());
    InternalError::from_response(error, response).into()
}
