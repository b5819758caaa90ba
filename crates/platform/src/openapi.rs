//! The OpenAPI document of a service, from its handlers and types.

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use utoipa::ToSchema as _;
use utoipa::openapi::{
    Content, License, LicenseBuilder, OpenApi, PathItem, Ref, RefOr, Response, ResponseBuilder,
    Server,
    path::Operation,
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    tag::Tag,
};
use utoipa_actix_web::AppExt as _;

use crate::{Service, failure::ErrorBody};

pub fn openapi<S: Service>() -> OpenApi {
    let (_, mut document) =
        actix_web::App::new().into_utoipa_app().configure(S::routes).split_for_parts();
    document.info.title = format!("Backhaul {}", S::NAME);
    document.info.description = Some(S::ABOUT.to_owned());
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    document.info.license = Some(license());
    document.info.contact = None;
    document.servers = Some(vec![Server::new("/")]);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    complete(&mut document);
    document
}

const JSON: &str = "application/json";
/// Responses that middleware and extractors can return for every handler.
const TO_ALL: [(&str, &str); 3] = [
    ("400", "The request cannot be read"),
    ("429", "Too many requests from this address; see Retry-After"),
    ("503", "Not possible at the moment; see Retry-After"),
];
/// To JSON, which is read for the handler.
const TO_BODIES: [(&str, &str); 3] = [
    ("408", "The body did not arrive in time"),
    ("413", "The body is too large"),
    ("415", "The body is of another type, or packed in an unknown way"),
];

/// To those who may name a merchant.
const TO_NAMES: (&str, &str) = ("404", "No such merchant");

/// Declares every tag, adds the answers that handlers do not give themselves, and describes every
/// answer that its handler did not by the status itself.
fn complete(document: &mut OpenApi) {
    let mut tags = BTreeSet::new();
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        tags.extend(operation.tags.iter().flatten().cloned());
        let is_json = matches!(&operation.request_body,
            Some(RefOr::T(body)) if body.content.keys().eq([JSON]));
        let bodies = TO_BODIES.into_iter().filter(|_| is_json);
        let parameters = operation.parameters.as_deref().unwrap_or_default();
        let names = parameters
            .iter()
            .any(|it| matches!(it, RefOr::T(parameter) if parameter.name == "X-Service-Id"));
        let responses = &mut operation.responses.responses;
        for (status, description) in bodies.chain(names.then_some(TO_NAMES)).chain(TO_ALL) {
            responses.entry(status.to_owned()).or_insert_with(|| refusal(description));
        }
        for (status, response) in responses {
            if let RefOr::T(response) = response
                && response.description.is_empty()
            {
                reason(status).clone_into(&mut response.description);
            }
        }
    }
    document.tags = Some(tags.into_iter().map(Tag::new).collect());
}

fn refusal(description: &str) -> RefOr<Response> {
    let body = Content::new(Some(Ref::from_schema_name(ErrorBody::name())));
    ResponseBuilder::new().description(description).content(JSON, body).into()
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn reason(status: &str) -> &'static str {
    let status = StatusCode::from_bytes(status.as_bytes()).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("An answer")
}

fn license() -> License {
    LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()
}
