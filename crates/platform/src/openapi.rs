//! The OpenAPI document of a service, from its handlers and types.
//!
//! Handlers describe themselves. This module adds everything that is the same for all handlers: the responses
//! of middleware and extractors, of scopes and of parameters, the rules of common headers, and security
//! schemes.
//!
//! See docs/decisions/api-documents.md.

mod headers;
mod security;

use std::collections::BTreeSet;

use actix_web::http::StatusCode;
use utoipa::openapi::{
    ContactBuilder, Content, License, LicenseBuilder, OpenApi, PathItem, Ref, RefOr, Response,
    ResponseBuilder, Server,
    path::{Operation, ParameterIn},
    tag::{Tag, TagBuilder},
};
use utoipa::{PartialSchema as _, ToSchema as _};
use utoipa_actix_web::AppExt as _;

use crate::{Service, definition::Definition, failure::ErrorBody};

const JSON: &str = "application/json";
/// Responses that middleware and extractors can return for every handler.
const FOR_ALL: [(&str, &str); 3] = [
    ("400", "The request cannot be read"),
    ("429", "A limit or a capacity is reached; see Retry-After"),
    ("503", "A dependency does not respond in time; see Retry-After"),
];
/// Responses for handlers with a JSON body.
const FOR_BODIES: [(&str, &str); 4] = [
    ("408", "The body did not arrive in time"),
    ("413", "The body is too large"),
    ("415", "The body is not JSON, or its encoding is not supported"),
    ("422", "Some fields are invalid; nothing is stored"),
];
/// The response for handlers with a parameter in the path.
const FOR_PATHS: (&str, &str) = ("404", "It does not exist, or belongs to another merchant");
/// The response for handlers with the header `X-Service-Id`.
const FOR_MERCHANTS: (&str, &str) = ("404", "The merchant does not exist");

pub fn openapi<S: Service>() -> OpenApi {
    document(Definition::of::<S>())
}

pub(crate) fn document(definition: Definition) -> OpenApi {
    let (_, mut document) =
        actix_web::App::new().into_utoipa_app().configure(definition.routes).split_for_parts();
    document.info.title = format!("Backhaul {}", definition.name);
    document.info.description = Some(definition.about.to_owned());
    env!("CARGO_PKG_VERSION").clone_into(&mut document.info.version);
    document.info.license = Some(license());
    let contact = ContactBuilder::new().name(Some("The operators of this installation"));
    document.info.contact = Some(contact.build());
    document.servers = Some(vec![Server::new("/")]);
    let mut tags = BTreeSet::new();
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        tags.extend(operation.tags.iter().flatten().cloned());
        add_responses(operation);
        headers::describe(operation);
        security::describe(operation);
    }
    add_error_body(&mut document);
    document.tags = Some(tags.into_iter().map(|name| describe_tag(definition, name)).collect());
    security::add_schemes(&mut document);
    (definition.webhooks)(&mut document);
    document
}

/// Adds the responses that a handler does not describe itself. A response without a description gets
/// the reason phrase of its status.
fn add_responses(operation: &mut Operation) {
    let is_json = matches!(&operation.request_body,
        Some(RefOr::T(body)) if body.content.keys().eq([JSON]));
    let bodies = FOR_BODIES.into_iter().filter(|_| is_json);
    let paths = has_path_parameter(operation).then_some(FOR_PATHS);
    let merchants = headers::names_merchant(operation).then_some(FOR_MERCHANTS);
    let tokens = security::responses(operation);
    let common = bodies.chain(paths).chain(merchants).chain(tokens).chain(FOR_ALL);
    let responses = &mut operation.responses.responses;
    for (status, description) in common {
        responses.entry(status.to_owned()).or_insert_with(|| error_response(description));
    }
    for (status, response) in responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            reason(status).clone_into(&mut response.description);
        }
    }
}

fn has_path_parameter(operation: &Operation) -> bool {
    let mut parameters = operation.parameters.iter().flatten();
    parameters.any(|it| matches!(it, RefOr::T(it) if it.parameter_in == ParameterIn::Path))
}

fn error_response(description: &str) -> RefOr<Response> {
    let body = Content::new(Some(Ref::from_schema_name(ErrorBody::name())));
    ResponseBuilder::new().description(description).content(JSON, body).into()
}

/// Adds the schema of the body of common responses, with the schemas that it refers to.
fn add_error_body(document: &mut OpenApi) {
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema())];
    ErrorBody::schemas(&mut schemas);
    document.components.get_or_insert_default().schemas.extend(schemas);
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn reason(status: &str) -> &'static str {
    let status = StatusCode::from_bytes(status.as_bytes()).ok();
    status.and_then(|status| status.canonical_reason()).unwrap_or("A response")
}

fn describe_tag(definition: Definition, name: String) -> Tag {
    let described = definition.tags.iter().find(|(tag, _)| *tag == name);
    TagBuilder::new().description(described.map(|(_, description)| *description)).name(name).build()
}

fn license() -> License {
    LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()
}
