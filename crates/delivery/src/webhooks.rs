//! Messages to merchants as webhooks in the OpenAPI documents.

use chrono::{DateTime, TimeDelta};
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use domain::samples::{EVENTS, SampleEvent};
use utoipa::ToSchema;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{
    ContentBuilder, HttpMethod, ObjectBuilder, OpenApi, PathItem, Ref, Required, ResponseBuilder,
    ResponsesBuilder, example::ExampleBuilder, schema::Type,
};

use crate::TAG;

const DESCRIPTION: &str = "\
Backhaul sends this request to the merchant's endpoint. Every attempt has the same body and the same \
`webhook-id`; signature and timestamp are new. Messages with the same ordering key arrive in order. The \
endpoint's authentication is a setting of the merchant.";

/// The time in the example bodies: the beginning of 2026.
const SAMPLE_TIME: TimeDelta = TimeDelta::seconds(1_767_225_600);

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
        "The event that the message reports; `sample` for a check of the endpoint.",
        CHECK,
    ),
    ("X-Service-Sequence", "Grows with each message of the same ordering key.", "1"),
    ("X-Service-Api-Version", "The version of the message, which the endpoint chooses.", "1"),
    ("X-Service-Id", "The identifier of the merchant.", "acme"),
];

/// The event of the messages that a check of an endpoint sends.
const CHECK: &str = "sample";

const RESPONSES: [(&str, &str); 3] = [
    ("2XX", "The message is delivered and will not be sent again"),
    (
        "401",
        "The next attempt follows at once with a new token, if the endpoint uses OAuth 2.0. Otherwise the attempt failed",
    ),
    (
        "default",
        "The attempt failed, as it does with a redirect or without a response. Five more attempts follow within an hour, later if `Retry-After` says so. Then the message is dead until an operator replays it",
    ),
];

/// The response of a merchant that has the exchange order already.
const CONFLICT: (&str, &str) = (
    "409",
    "The original order has an exchange order already. The attempt failed, and is repeated like any other",
);

/// The responses of a label provider.
const LABELS: [(&str, &str); 3] = [
    (
        "2XX",
        "The label, with `tracking_number` and `label` (an https URL, or a PDF, PNG or ZPL document in base64) or `qr_code`, and if known `carrier`, `service`, `cost_cents` with `currency`, and `expires_at`. A label that cannot be used is canceled",
    ),
    (
        "202",
        "The label comes later, in a report of the provider or as the event `label` of the parcel",
    ),
    (
        "422",
        "No label is possible: `reason` is `invalid_address`, `not_served`, `too_heavy`, `too_large`, `prohibited` or `other`, and `detail` says more. Without a reason the attempt failed",
    ),
];

/// Adds the messages of a kind, which have the schema of `T`, to an API document.
pub fn webhook<T: ToSchema>(document: &mut OpenApi, kind: MessageKind) {
    let components = document.components.get_or_insert_default();
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    components.schemas.extend(schemas);
    let name = kind.to_string().replace('-', "_");
    let own: &[(&str, &str)] = match kind {
        MessageKind::ExchangeOrder => &[CONFLICT],
        MessageKind::LabelRequest => &LABELS,
        _ => &[],
    };
    let responses = RESPONSES.iter().chain(own).map(|(status, description)| {
        (*status, ResponseBuilder::new().description(*description).build())
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
    let examples = events(kind).map(|event| {
        // A test reads the sample of every event. The examples have the version of the contract.
        let version = Interface::Message(kind).default_version();
        let body = event.body(version, DateTime::UNIX_EPOCH + SAMPLE_TIME);
        let body = body.and_then(|body| serde_json::from_str(&body)).ok();
        (event.name, ExampleBuilder::new().summary(event.about).value(body).build())
    });
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name(T::name())))
        .examples_from_iter(examples);
    let body = RequestBodyBuilder::new().content("application/json", content.build());
    body.required(Some(Required::True)).build()
}

fn events(kind: MessageKind) -> impl Iterator<Item = &'static SampleEvent> {
    EVENTS.iter().filter(move |event| event.kind == kind)
}

fn parameter(kind: MessageKind, (name, description, example): (&str, &str, &str)) -> Parameter {
    let text = ObjectBuilder::new().schema_type(Type::String);
    let text = match name {
        "X-Service-Api-Version" => text.examples(kind.versions().iter().map(ToString::to_string)),
        "X-Service-Event" => {
            let names = events(kind).map(|event| event.name);
            text.enum_values(Some(names.chain([CHECK])))
        }
        _ => text.examples([example]),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Header)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(text))
        .build()
}

#[cfg(test)]
mod tests {
    use domain::returns::RmaMessage;
    use domain::samples::sample;
    use serde_json::{Value, json};
    use utoipa::openapi::OpenApiBuilder;

    use super::*;

    #[test]
    fn a_webhook_has_an_example_of_every_event_of_its_kind() {
        let mut document = OpenApiBuilder::new().build();
        webhook::<RmaMessage>(&mut document, MessageKind::Rma);
        let document: Value = serde_json::to_value(&document).unwrap();
        let rma = &document["webhooks"]["rma"]["post"];
        let examples = &rma["requestBody"]["content"]["application/json"]["examples"];
        let parameters = rma["parameters"].as_array().unwrap();
        let event = parameters.iter().find(|one| one["name"] == "X-Service-Event").unwrap();
        let names = event["schema"]["enum"].as_array().unwrap();
        let (check, events) = names.split_last().unwrap();
        assert_eq!((check, events.len()), (&json!("sample"), 13));
        for name in events {
            let example = &examples[name.as_str().unwrap()];
            assert_eq!(example["value"]["rma_identifier"], "SAMPLE-RMA", "{name}");
            assert_eq!(example["value"]["updated_at"], "2026-01-01T00:00:00Z", "{name}");
            assert!(example["summary"].is_string(), "{name}");
        }
        assert_eq!(examples["rma.refunded"]["value"]["status"], "REFUNDED");
    }

    /// The page that tells merchants about messages.
    const GUIDE: &str = include_str!("../../../docs/receive-messages.md");

    /// The page with sample bodies, which `scripts/make-api-files` writes.
    const SAMPLES: &str = include_str!("../../../docs/sample-messages.md");

    #[test]
    fn the_guide_lists_every_event() {
        for event in EVENTS {
            let row = format!("| `{}` | {} | {} |", event.name, event.kind, event.about);
            assert!(GUIDE.contains(&row), "{row}");
        }
    }

    #[test]
    fn the_guide_lists_the_versions_and_the_default_path_of_every_kind() {
        for kind in MessageKind::ALL {
            let versions: Vec<_> = kind.versions().iter().map(ToString::to_string).collect();
            let row = format!("| `{kind}` | {} | `{}` |", versions.join(", "), kind.default_path());
            assert!(GUIDE.contains(&row), "{row}");
        }
    }

    #[test]
    fn the_sample_of_every_kind_is_among_the_sample_messages() {
        let blocks = SAMPLES.split("```json\n").skip(1).filter_map(|rest| rest.split("```").next());
        let bodies: Vec<Value> = blocks.map(|text| serde_json::from_str(text).unwrap()).collect();
        for kind in MessageKind::ALL {
            let sample: Value = serde_json::from_str(sample(kind)).unwrap();
            assert!(bodies.contains(&sample), "the sample of {kind} is not among the messages");
        }
    }

    #[test]
    fn the_guide_has_the_default_retry_schedule() {
        for default in ["retry_base = \"10s\"", "retry_factor = 4", "retries = 5"] {
            assert!(crate::DEFAULTS.lines().any(|line| line == default), "{default}");
        }
        let (mut pause, mut total) = (10, 0);
        for attempt in 2..=6 {
            total += pause;
            let time = match (total / 60, total % 60) {
                (0, seconds) => format!("{seconds} s"),
                (minutes, seconds) => format!("{minutes} min {seconds} s"),
            };
            let row = format!("| {attempt} | {pause} s | {time} |");
            assert!(GUIDE.contains(&row), "{row}");
            pause *= 4;
        }
    }
}
