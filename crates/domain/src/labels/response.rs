//! The response of a provider that made a label.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use url::Url;
use utoipa::ToSchema;

use super::document::LabelDocument;
use crate::json::{
    Document, FieldError, JsonValue, Object, ParseError, ValidationError, currency, integer,
    object, parsed, printable_text, timestamp,
};

/// The fields that a label needs.
const NEEDED: [&str; 3] = ["tracking_number", "label", QR_CODE];
/// A label that is a document or a URL can do without.
const QR_CODE: &str = "qr_code";
/// The fields that are left out of a response if they are not valid: the label was bought all the same.
const INFORMATIVE: [&str; 5] = ["carrier", "service", "cost_cents", "currency", "expires_at"];

/// The bytes of a response to a label request that are read.
pub const MAX_LABEL_RESPONSE_BYTES: usize = 1_536 * 1_024;

/// A document in base64 with line breaks and escapes.
const MAX_LABEL_CHARS: usize = 1_500_000;
const MAX_URL_CHARS: usize = 2_048;
const MAX_QR_CODE_CHARS: usize = 1_000;
/// In minor units; far above the price of a label.
const MAX_COST_CENTS: i64 = 100_000_000;
const NOT_HTTPS: &str = "must be an https URL without credentials";
const LONG_URL: &str = "must be a URL of up to 2048 characters";
const NO_LABEL: &str = "is needed, unless there is a qr_code";

/// A label that a provider made.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLabel)]
pub struct BoughtLabel {
    #[schema(min_length = 1, max_length = 255)]
    pub tracking_number: String,
    #[schema(min_length = 1, max_length = 100)]
    pub carrier: Option<String>,
    #[schema(min_length = 1, max_length = 100)]
    pub service: Option<String>,
    /// The https URL at which the shopper gets the label, or the label itself: a PDF, PNG or ZPL document of up to 1 MiB in
    /// base64. Needed without `qr_code`.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 1_500_000)]
    pub label: Option<LabelContent>,
    /// The text of the QR code that the carrier scans on the shopper's screen. Needed without `label`.
    #[schema(min_length = 1, max_length = 1000)]
    pub qr_code: Option<String>,
    /// The price of the label. Needs `currency`.
    #[schema(minimum = 0, maximum = 100_000_000)]
    pub cost_cents: Option<i64>,
    #[schema(pattern = "^[A-Z]{3}$")]
    pub currency: Option<String>,
    /// The time from which the carrier does not accept the label any more.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A label to print or to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelContent {
    /// The provider, or the carrier, shows it.
    Url(String),
    Document(LabelDocument),
}

/// A label in a response, and the fields of the response that are left out because they are not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadLabel {
    pub label: BoughtLabel,
    pub left_out: Vec<FieldError>,
}

/// A successful response without a label that can be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidLabel {
    #[error("{0}")]
    Syntax(#[from] ParseError),
    #[error("the response is not an object")]
    NotAnObject,
    #[error("{}", list(.0))]
    Fields(#[from] ValidationError),
}

fn list(invalid: &ValidationError) -> String {
    invalid.errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl BoughtLabel {
    /// Reads the body of a response with the status 200 or 201. Unknown fields are ignored.
    pub fn from_response(body: &[u8]) -> Result<ReadLabel, InvalidLabel> {
        let document = Document::parse(body)?;
        let JsonValue::Object(members) = document.value() else {
            return Err(InvalidLabel::NotAnObject);
        };
        let member = |key: &&str| Some(((*key).to_owned(), members.get(key)?.to_value()));
        let mut known: Map<_, _> = NEEDED.iter().chain(&INFORMATIVE).filter_map(member).collect();
        let has_label = known.get("label").is_some_and(|label| !label.is_null());
        let is_informative =
            |key: &str| INFORMATIVE.contains(&key) || (has_label && key == QR_CODE);
        let mut left_out = Vec::new();
        // A field that is left out can make another one invalid.
        loop {
            let invalid = match read(&known) {
                Ok(label) => return Ok(ReadLabel { label, left_out }),
                Err(invalid) => invalid,
            };
            let before = known.len();
            known.retain(|key, _| !is_informative(key) || !has_error(&invalid, key));
            if known.len() == before {
                return Err(invalid.into());
            }
            let is_left_out =
                |error: &FieldError| error.field.strip_prefix("$.").is_some_and(is_informative);
            left_out.extend(invalid.errors.into_iter().filter(is_left_out));
        }
    }

    /// Reads a label that a provider reports to Backhaul.
    pub fn read(label: &Object<'_>) -> Option<Self> {
        let known = [&NEEDED[..], &INFORMATIVE].concat();
        label.reject_unknown(&known);
        let tracking_number = label.required("tracking_number", printable_text(1..=255));
        let carrier = label.optional("carrier", printable_text(1..=100));
        let service = label.optional("service", printable_text(1..=100));
        let content = label.optional("label", parsed(1..=MAX_LABEL_CHARS, label_content));
        let qr_code = label.optional(QR_CODE, printable_text(1..=MAX_QR_CODE_CHARS));
        let cost_cents = label.optional("cost_cents", integer(0..=MAX_COST_CENTS));
        let currency = label.optional("currency", |field| Some(currency(field)?.code().to_owned()));
        let expires_at = label.optional("expires_at", timestamp);
        if !label.has("label") && !label.has(QR_CODE) {
            label.invalid("label", NO_LABEL);
        }
        if label.has("cost_cents") && !label.has("currency") {
            label.invalid("cost_cents", "needs a currency");
        }
        Some(Self {
            tracking_number: tracking_number?,
            carrier: carrier?,
            service: service?,
            label: content?,
            qr_code: qr_code?,
            cost_cents: cost_cents?,
            currency: currency?,
            expires_at: expires_at?,
        })
    }

    /// The URL at which the shopper gets the label.
    pub fn url(&self) -> Option<&str> {
        match &self.label {
            Some(LabelContent::Url(url)) => Some(url),
            Some(LabelContent::Document(_)) | None => None,
        }
    }

    pub fn document(&self) -> Option<&LabelDocument> {
        match &self.label {
            Some(LabelContent::Document(document)) => Some(document),
            Some(LabelContent::Url(_)) | None => None,
        }
    }
}

fn has_error(invalid: &ValidationError, key: &str) -> bool {
    invalid.errors.iter().any(|error| error.field == format!("$.{key}"))
}

fn read(known: &Map<String, Value>) -> Result<BoughtLabel, ValidationError> {
    Document::from(Value::Object(known.clone())).read(object(BoughtLabel::read))
}

/// A URL has a colon, and base64 has none.
fn label_content(text: &str) -> Result<LabelContent, &'static str> {
    if text.contains(':') {
        return label_url(text).map(LabelContent::Url);
    }
    LabelDocument::from_base64(text).map(LabelContent::Document)
}

/// Shoppers open the URL, so it has no scheme that runs a script.
fn label_url(text: &str) -> Result<String, &'static str> {
    if text.chars().count() > MAX_URL_CHARS {
        return Err(LONG_URL);
    }
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\');
    let is_https = |url: Url| {
        url.scheme() == "https"
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
    };
    let is_accepted = is_plain && Url::parse(text).is_ok_and(is_https);
    if is_accepted { Ok(text.to_owned()) } else { Err(NOT_HTTPS) }
}
