//! The request of a delivery: URL, headers and the command that repeats it.

use std::collections::BTreeMap;

use api::delivery::{AttemptView, DeliveryView, HeaderView};
use pages::{
    api::{ApiError, Part, Service},
    path,
};
use serde::Deserialize;

use crate::SignedIn;

/// The services write this instead of a secret.
const MASK: &str = "********";
/// Headers that curl sets itself.
const SET_BY_CURL: [&str; 2] = ["host", "content-length"];

/// The request of the last attempt.
pub(super) struct Request {
    /// The URL of the endpoint today.
    pub(super) url: Option<String>,
    /// Headers of the last attempt, with secrets masked.
    pub(super) headers: Vec<HeaderView>,
    pub(super) curl: String,
}

#[derive(Deserialize)]
struct Merchant {
    #[serde(default)]
    base_url: Option<String>,
    #[serde(default)]
    endpoints: BTreeMap<String, Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    path: Option<String>,
}

impl Request {
    /// Loads the URL from the merchant's settings. The page stands without it.
    pub(super) async fn load(
        signed_in: &SignedIn,
        delivery: &DeliveryView,
        last: Option<&AttemptView>,
        body: &str,
    ) -> Result<Self, ApiError> {
        let path = path!("v1", "merchants", delivery.merchant);
        let merchant = signed_in.api.get::<Merchant>(Service::Auth, &path, &[]).await;
        let url = match Part::new(merchant) {
            Ok(Part::Loaded(merchant)) => merchant.url(&delivery.kind),
            // Deliveries are kept when their merchant is gone.
            Ok(Part::Missing(_)) | Err(ApiError::NotFound) => None,
            Err(error) => return Err(error),
        };
        let headers = last.map(|last| last.request_headers.clone()).unwrap_or_default();
        let curl = curl(url.as_deref().unwrap_or("<URL>"), &headers, body);
        Ok(Self { url, headers, curl })
    }
}

impl Merchant {
    fn url(&self, kind: &str) -> Option<String> {
        let endpoint = self.endpoints.get(kind)?;
        if let Some(url) = &endpoint.url {
            return Some(url.clone());
        }
        let standard = kind.parse::<domain::message_kind::MessageKind>().ok();
        let path = endpoint.path.as_deref().or(standard.map(|kind| kind.default_path()))?;
        Some(format!("{}{path}", self.base_url.as_ref()?.trim_end_matches('/')))
    }
}

/// The command that sends the request again. A secret becomes a placeholder.
fn curl(url: &str, headers: &[HeaderView], body: &str) -> String {
    let mut lines = vec![format!("curl --request POST {}", quoted(&without_secrets(url)))];
    let content_type =
        HeaderView { name: "content-type".to_owned(), value: "application/json".to_owned() };
    let has_content_type = headers.iter().any(|header| header.name == content_type.name);
    let added = (!has_content_type).then_some(&content_type);
    for HeaderView { name, value } in headers.iter().chain(added) {
        if !SET_BY_CURL.contains(&name.as_str()) {
            let value = without_secrets(value);
            lines.push(format!("--header {}", quoted(&format!("{name}: {value}"))));
        }
    }
    lines.push(format!("--data-raw {}", quoted(body)));
    lines.join(" \\\n  ")
}

fn without_secrets(text: &str) -> String {
    text.replace(MASK, "<SECRET>")
}

/// A text as one word of a shell command.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> HeaderView {
        HeaderView { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn the_command_has_no_secret_and_no_way_out_of_its_quotes() {
        let headers = [
            header("host", "acme.test"),
            header("authorization", MASK),
            header("content-type", "application/json"),
            header("webhook-id", "1"),
        ];
        let command = curl("https://acme.test/rmas?********", &headers, r#"{"a":"it's"}"#);
        let expected = r#"curl --request POST 'https://acme.test/rmas?<SECRET>' \
  --header 'authorization: <SECRET>' \
  --header 'content-type: application/json' \
  --header 'webhook-id: 1' \
  --data-raw '{"a":"it'\''s"}'"#;
        assert_eq!(command, expected);
    }

    #[test]
    fn a_message_without_an_attempt_is_json_too() {
        let command = curl("<URL>", &[], "{}");
        assert!(command.contains("--header 'content-type: application/json'"), "{command}");
    }

    #[test]
    fn the_url_is_that_of_the_endpoint() {
        let merchant = |text| serde_json::from_str::<Merchant>(text).unwrap();
        let own = merchant(r#"{"endpoints": {"rma": {"url": "https://acme.test/hooks"}}}"#);
        assert_eq!(own.url("rma").as_deref(), Some("https://acme.test/hooks"));
        assert_eq!(own.url("exchange-order"), None);
        let text = r#"{"base_url": "https://acme.test/", "endpoints": {"rma": {}, "outbound-asn": {"path": "/asn"}}}"#;
        let below = merchant(text);
        assert_eq!(below.url("rma").as_deref(), Some("https://acme.test/rmas"));
        assert_eq!(below.url("outbound-asn").as_deref(), Some("https://acme.test/asn"));
    }
}
