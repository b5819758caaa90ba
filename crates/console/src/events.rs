//! The event catalogue: every message that a merchant can receive, with a sample, its headers, and the
//! times of the attempts.
//!
//! Samples and descriptions come from the OpenAPI documents of the services, so they are those of the
//! running version.

mod schedule;

use std::collections::BTreeMap;

use actix_web::{get, web};
use api::delivery::EndpointPage;
use askama::Template;
use domain::message_kind::MessageKind;
use futures_util::future::join;
use pages::api::Service;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Page, PageResult, Section, SignedIn, html, parts::each, record_list::indented};

use schedule::{RetryRow, retry_rows};

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    webhooks: BTreeMap<String, Webhook>,
}

#[derive(Deserialize)]
struct Webhook {
    post: Operation,
}

#[derive(Deserialize)]
struct Operation {
    #[serde(default)]
    description: String,
    #[serde(default)]
    parameters: Vec<Parameter>,
    #[serde(default, rename = "requestBody")]
    request_body: Body,
    #[serde(default)]
    responses: BTreeMap<String, Response>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(default)]
    description: String,
}

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    content: BTreeMap<String, Media>,
}

#[derive(Deserialize)]
struct Media {
    #[serde(default)]
    examples: BTreeMap<String, Example>,
}

/// A sample of one event.
#[derive(Deserialize)]
struct Example {
    #[serde(default)]
    summary: String,
    value: Box<RawValue>,
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    description: String,
}

/// A kind of message.
struct Event {
    kind: MessageKind,
    description: String,
    samples: Vec<Sample>,
    /// Status codes and what they mean.
    responses: Vec<(String, String)>,
}

struct Sample {
    /// The value of the header `X-Service-Event`.
    event: String,
    about: String,
    body: String,
}

impl Sample {
    /// A name for the element in the page.
    fn id(&self) -> String {
        self.event.replace('.', "-")
    }
}

#[derive(Template)]
#[template(path = "events.html")]
struct EventsPage {
    page: Page,
    events: Vec<Event>,
    /// Names and descriptions.
    headers: Vec<(String, String)>,
    retries: Vec<RetryRow>,
    missing: Vec<Service>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_events);
}

#[get("/events")]
async fn list_events(signed_in: SignedIn) -> PageResult {
    let page = signed_in.page(Section::Reference);
    let api = &signed_in.api;
    let (documents, schedules) = join(
        each::<Document>(api, &Service::DELIVERING, "openapi.json", &[]),
        each::<EndpointPage>(api, &Service::DELIVERING, "v1/endpoints", &[("limit", "1")]),
    )
    .await;
    let documents = documents?;
    let schedules = schedules?;
    let mut webhooks: BTreeMap<String, Operation> = BTreeMap::new();
    for (_, document) in documents.entries {
        let operations = document.webhooks.into_iter().map(|(name, webhook)| (name, webhook.post));
        webhooks.extend(operations);
    }
    let headers = webhooks.values().next().map(|one| one.headers()).unwrap_or_default();
    let events = MessageKind::ALL.into_iter().filter_map(|kind| {
        // OpenAPI names do not have hyphens.
        Some(Event::new(kind, webhooks.remove(&kind.name().replace('-', "_"))?))
    });
    html(&EventsPage {
        page,
        events: events.collect(),
        headers,
        retries: retry_rows(
            schedules.entries.into_iter().map(|(_, page)| page.retry_delays_seconds),
        ),
        missing: documents.missing,
    })
}

impl Operation {
    /// Names and descriptions of the headers.
    fn headers(&self) -> Vec<(String, String)> {
        let header = |one: &Parameter| (one.name.clone(), plain(&one.description));
        self.parameters.iter().map(header).collect()
    }
}

impl Event {
    fn new(kind: MessageKind, operation: Operation) -> Self {
        let media = operation.request_body.content.into_values();
        let examples = media.flat_map(|media| media.examples);
        let responses = operation.responses.into_iter();
        Self {
            kind,
            description: plain(&operation.description),
            samples: examples
                .map(|(event, example)| Sample {
                    event,
                    about: example.summary,
                    body: indented(example.value.get()),
                })
                .collect(),
            responses: responses
                .map(|(status, response)| {
                    let status = if status == "default" { "any other".to_owned() } else { status };
                    (status, plain(&response.description))
                })
                .collect(),
        }
    }
}

/// A description without marks of code.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_sample_of_its_document() {
        let text = r#"{"webhooks": {"rma": {"post": {
            "description": "The default path is `/rmas`.",
            "parameters": [{"name": "webhook-id", "description": "The id."}],
            "requestBody": {"content": {"application/json": {"examples": {
                "rma.created": {"summary": "a return was created", "value": {"b": 1, "a": 2}}
            }}}},
            "responses": {"2XX": {"description": "Delivered"}, "default": {"description": "Retried"}}
        }}}, "paths": {}}"#;
        let mut document: Document = serde_json::from_str(text).unwrap();
        let event = Event::new(MessageKind::Rma, document.webhooks.remove("rma").unwrap().post);
        assert_eq!(event.description, "The default path is /rmas.");
        let [sample] = &event.samples[..] else { panic!("{} samples", event.samples.len()) };
        assert_eq!((&*sample.event, &*sample.about), ("rma.created", "a return was created"));
        assert_eq!(sample.body, "{\n  \"b\": 1,\n  \"a\": 2\n}");
        let statuses: Vec<_> = event.responses.iter().map(|(status, _)| status.as_str()).collect();
        assert_eq!(statuses, ["2XX", "any other"]);
    }
}
