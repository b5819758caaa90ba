//! Lists of records of one merchant or, for staff, of all merchants.

use std::fmt::Display;

use pages::api::{ApiError, Part, Query, Service};
use serde::{Deserialize, de::DeserializeOwned, de::IgnoredAny};
use url::form_urlencoded;

use crate::{PageError, SignedIn};

mod sorted;

pub(crate) use sorted::{ORDER, Order, Sorted};

/// The number of records on a page.
pub(crate) const PAGE: &str = "50";

/// A list, or the reason why it cannot be shown.
#[derive(Debug)]
pub(crate) enum Listed<T> {
    Loaded(T),
    /// The filter is not valid.
    Invalid(String),
    Missing(Service),
}

impl<T> Listed<T> {
    /// Errors other than an invalid filter and an unavailable service concern the whole page.
    pub(crate) fn new(result: Result<T, ApiError>) -> Result<Self, PageError> {
        match Part::new(result) {
            Ok(Part::Loaded(list)) => Ok(Self::Loaded(list)),
            Ok(Part::Missing(service)) => Ok(Self::Missing(service)),
            Err(ApiError::Invalid(body)) => Ok(Self::Invalid(body.message)),
            Err(ApiError::NotFound) => Ok(Self::Invalid("there is no such merchant".to_owned())),
            Err(error) => Err(error.into()),
        }
    }
}

/// A page of records. Each list has its own name for them.
#[derive(Debug, Deserialize)]
pub(crate) struct Records<T> {
    #[serde(
        alias = "clients",
        alias = "deliveries",
        alias = "discrepancies",
        alias = "drop_shipments",
        alias = "endpoints",
        alias = "entries",
        alias = "exchange_orders",
        alias = "inbound_asns",
        alias = "merchants",
        alias = "orders",
        alias = "outbound_shipments",
        alias = "people",
        alias = "receipts",
        alias = "replays",
        alias = "returns",
        alias = "sessions",
        alias = "versions",
        alias = "warehouses"
    )]
    pub(crate) records: Vec<T>,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Self { records: Vec::new(), next: None }
    }
}

/// The merchant of a list: the person's own, the requested one, or none for staff.
pub(crate) fn merchant_filter<'a>(
    signed_in: &'a SignedIn,
    requested: &'a str,
) -> Result<Option<&'a str>, PageError> {
    match &signed_in.person.merchant {
        Some(own) if requested.is_empty() => Ok(Some(own)),
        None if requested.is_empty() => Ok(None),
        _ => signed_in.merchant(requested).map(Some),
    }
}

/// Loads a list within a merchant, or across merchants.
pub(crate) async fn load<T: DeserializeOwned>(
    signed_in: &SignedIn,
    service: Service,
    merchant: Option<&str>,
    path: &str,
    query: Query<'_>,
) -> Result<T, ApiError> {
    match merchant {
        Some(merchant) if !is_merchant_identifier(merchant) => Err(ApiError::NotFound),
        Some(merchant) => signed_in.api.get_for(service, merchant, path, query).await,
        None => signed_in.api.get(service, path, query).await,
    }
}

/// Opens a file within a merchant, or across merchants.
pub(crate) async fn download(
    signed_in: &SignedIn,
    service: Service,
    merchant: Option<&str>,
    path: &str,
    query: Query<'_>,
) -> Result<reqwest::Response, ApiError> {
    match merchant {
        Some(merchant) if !is_merchant_identifier(merchant) => Err(ApiError::NotFound),
        merchant => signed_in.api.download(service, merchant, path, query).await,
    }
}

/// A record, or nothing if it does not exist.
pub(crate) fn found<T>(result: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
    match result {
        Ok(record) => Ok(Some(record)),
        Err(ApiError::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a text can be a merchant's identifier. Other texts are not valid in a header.
fn is_merchant_identifier(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(is_plain)
}

/// The query of a URL, without empty values.
pub(crate) fn query_string(pairs: Query<'_>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    query.finish()
}

/// A code of the API as words: `NOT_DROPPED_OFF` becomes "not dropped off".
pub(crate) fn words(code: impl Display) -> String {
    code.to_string().replace('_', " ").to_lowercase()
}

/// An address that a page may link to. Merchants and carriers set these, so only web pages count.
pub(crate) fn web_url(url: Option<&str>) -> Option<&str> {
    url.filter(|url| url.starts_with("https://") || url.starts_with("http://"))
}

/// An amount, without a currency if that is not known.
pub(crate) fn amount(cents: i64, currency: Option<&str>) -> String {
    pages::text::money(cents, currency.unwrap_or_default()).trim_end().to_owned()
}

/// JSON with line breaks and its fields in their order; another text stays as it is.
pub(crate) fn indented(json: &str) -> String {
    if serde_json::from_str::<IgnoredAny>(json).is_err() {
        return json.to_owned();
    }
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut is_text = false;
    let mut is_escaped = false;
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        if is_text {
            text.push(letter);
            is_text = is_escaped || letter != '"';
            is_escaped = letter == '\\' && !is_escaped;
            continue;
        }
        match letter {
            letter if letter.is_ascii_whitespace() => continue,
            '"' => is_text = true,
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut text, depth);
            }
            _ => {}
        }
        text.push(letter);
        match letter {
            ':' => text.push(' '),
            ',' => new_line(&mut text, depth),
            '{' | '[' => {
                while letters.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(end);
                } else {
                    depth += 1;
                    new_line(&mut text, depth);
                }
            }
            _ => {}
        }
    }
    text
}

fn new_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_indented_in_its_order() {
        let text = r#"{"b": 1.10,"a":[ ],"c":{"x":["1\",{",2]}}"#;
        let shown = "{\n  \"b\": 1.10,\n  \"a\": [],\n  \"c\": {\n    \"x\": [\n      \"1\\\",{\",\n      2\n    ]\n  }\n}";
        assert_eq!(indented(text), shown);
        assert_eq!(indented("not {json"), "not {json");
        assert_eq!(indented(r#""a\\""#), r#""a\\""#);
    }

    #[test]
    fn only_web_pages_are_links() {
        assert_eq!(web_url(Some("https://shop.test/a.jpg")), Some("https://shop.test/a.jpg"));
        assert_eq!(web_url(Some("javascript:alert(1)")), None);
        assert_eq!(web_url(None), None);
    }

    #[test]
    fn amounts_without_a_currency_have_none() {
        assert_eq!(amount(4995, Some("EUR")), "49.95 EUR");
        assert_eq!(amount(4995, None), "49.95");
    }

    #[test]
    fn empty_filters_are_not_in_the_url() {
        assert_eq!(query_string(&[("state", ""), ("merchant", "a&b")]), "merchant=a%26b");
    }

    #[test]
    fn a_merchant_identifier_fits_into_a_header() {
        assert!(is_merchant_identifier("acme-2"));
        for text in ["", "Acme", "a\nb", "ä"] {
            assert!(!is_merchant_identifier(text), "{text}");
        }
    }
}
