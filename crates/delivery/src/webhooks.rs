//! Messages to merchants as webhooks in the OpenAPI documents.

use domain::message_kind::MessageKind;
use utoipa::ToSchema;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{
    ContentBuilder, HttpMethod, ObjectBuilder, OpenApi, PathItem, Ref, Required, ResponseBuilder,
    ResponsesBuilder, schema::Type,
};

use crate::TAG;
use crate::admin::sample::sample;

const DESCRIPTION: &str = "\
Backhaul sends this request to the merchant's endpoint. Every attempt has the same body and the same \
`webhook-id`; signature and timestamp are new. Messages with the same ordering key arrive in order. The \
endpoint's authentication is a setting of the merchant.";

const HEADERS: [(&str, &str, &str); 7] = [
    (
        "webhook-id",
        "The id of the message, the same in every attempt. Ignore ids that you have processed.",
        "01980a4c-7c1e-7000-8000-000000000001",
    ),
    (
        "webhook-timestamp",
        "The time of the attempt in seconds since 1970. Reject times that differ by more than five minutes.",
        "1767225600",
    ),
    (
        "webhook-signature",
        "One or more signatures, separated by spaces: `v1,` and the Base64 text of the HMAC-SHA256 over id, timestamp and body (Standard Webhooks). A message is authentic if one signature is.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
    (
        "X-Service-Event",
        "The cause of the message; `sample` for a check of the endpoint.",
        "sample",
    ),
    ("X-Service-Sequence", "Grows with each message of the same ordering key.", "1"),
    ("X-Service-Api-Version", "The version of the message format.", "1"),
    ("X-Service-Id", "The identifier of the merchant.", "acme"),
];

const RESPONSES: [(&str, &str); 4] = [
    ("2XX", "The message is delivered and will not be sent again"),
    (
        "401",
        "The next attempt follows at once with a new token, if the endpoint uses OAuth 2.0. Otherwise the attempt failed",
    ),
    ("410", "The message is dead at once, and the endpoint is disabled until its settings change"),
    (
        "default",
        "The attempt failed, as it does with a redirect or without a response. Five more attempts follow within an hour, later if `Retry-After` says so. Then the message is dead until an operator replays it",
    ),
];

/// The response of a merchant that has the exchange order already.
const CONFLICT: (&str, &str) =
    ("409", "The original order has an exchange order already. The message is dead at once");

/// Adds the messages of a kind, which have the schema of `T`, to an API document.
pub fn webhook<T: ToSchema>(document: &mut OpenApi, kind: MessageKind) {
    let components = document.components.get_or_insert_default();
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    components.schemas.extend(schemas);
    let name = kind.to_string().replace('-', "_");
    let conflict = (kind == MessageKind::ExchangeOrder).then_some(CONFLICT);
    let responses = RESPONSES.into_iter().chain(conflict).map(|(status, description)| {
        (status, ResponseBuilder::new().description(description).build())
    });
    let operation = OperationBuilder::new()
        .tag(TAG.0)
        .operation_id(Some(format!("deliver_{name}")))
        .summary(Some(format!("Deliver a message of the kind {kind}")))
        .description(Some(format!("{DESCRIPTION} The default path is `{}`.", kind.default_path())))
        .parameters(Some(HEADERS.map(|header| parameter(kind, header))))
        .request_body(Some(body::<T>(kind)))
        // The merchant chooses how its endpoint authenticates requests.
        .securities(Some([]))
        .responses(ResponsesBuilder::new().responses_from_iter(responses).build());
    let item = PathItem::new(HttpMethod::Post, operation);
    document.webhooks.get_or_insert_default().paths.insert(name, item);
}

fn body<T: ToSchema>(kind: MessageKind) -> RequestBody {
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(T::name())))
        .example(serde_json::from_str(sample(kind)).ok());
    let body = RequestBodyBuilder::new().content("application/json", content.build());
    body.required(Some(Required::True)).build()
}

fn parameter(kind: MessageKind, (name, description, example): (&str, &str, &str)) -> Parameter {
    let is_version = name == "X-Service-Api-Version";
    let example = if is_version { kind.api_version() } else { example };
    let text = ObjectBuilder::new().schema_type(Type::String).examples([example]);
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(text))
        .build()
}
