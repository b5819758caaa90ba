//! Headers of a request and its response for the attempt log, as lines `name: value`.
//!
//! The log leaves out request headers that follow from the message and the time of the attempt;
//! [`derived_headers`] adds them again.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use platform::signing;
use reqwest::Request;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::call::{EVENT, SEQUENCE, SERVICE_ID};
use super::masking::{MASK, SentSecrets};
use crate::client::USER_AGENT;

const MAX_LOGGED_BYTES: usize = 2 * 1024;
/// One long value must not displace all other headers.
const MAX_VALUE_BYTES: usize = 512;

/// A response header whose name contains one of these may hold a secret of the merchant.
const SECRET_NAMES: [&str; 8] =
    ["cookie", "authorization", "token", "secret", "password", "api-key", "apikey", "session"];

/// Returns the headers of a request that do not follow from its message. Values of the merchant's
/// settings are sensitive, and masked.
pub(super) fn request_headers(request: &Request) -> String {
    let mut log = HeaderLog::default();
    if let Some(host) = request.url().host_str() {
        let port = request.url().port().map(|port| format!(":{port}")).unwrap_or_default();
        log.push("host", format!("{host}{port}"));
    }
    log.push(header::USER_AGENT.as_str(), USER_AGENT);
    for (name, value) in request.headers() {
        if !is_derived(name) {
            log.push(name.as_str(), if value.is_sensitive() { MASK.into() } else { text(value) });
        }
    }
    log.0
}

/// Returns the headers of a response, without our secrets and without those of the merchant.
pub(super) fn response_headers(headers: &HeaderMap, secrets: &SentSecrets<'_>) -> String {
    let mut log = HeaderLog::default();
    for (name, value) in headers {
        let is_secret = SECRET_NAMES.iter().any(|part| name.as_str().contains(part));
        log.push(name.as_str(), if is_secret { MASK.into() } else { secrets.mask(text(value)) });
    }
    log.0
}

#[derive(Default)]
struct HeaderLog(String);

impl HeaderLog {
    /// Adds a line, unless the log is full.
    fn push<'v>(&mut self, name: &str, value: impl Into<Cow<'v, str>>) {
        let value = value.into();
        let value = value.get(..value.floor_char_boundary(MAX_VALUE_BYTES)).unwrap_or_default();
        if self.0.len() + name.len() + value.len() + ": \n".len() <= MAX_LOGGED_BYTES {
            self.0.extend([name, ": ", value, "\n"]);
        }
    }
}

fn text(value: &HeaderValue) -> Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes())
}

fn is_derived(name: &HeaderName) -> bool {
    [header::ACCEPT, header::CONTENT_TYPE, SERVICE_ID, EVENT, SEQUENCE].contains(name)
        || [signing::ID_HEADER, signing::TIMESTAMP_HEADER].contains(&name.as_str())
}

/// The facts of a message that its request headers contain.
pub(crate) struct MessageFacts<'a> {
    pub(crate) id: &'a str,
    pub(crate) merchant: &'a str,
    pub(crate) event: &'a str,
    pub(crate) sequence: i64,
    pub(crate) body_bytes: usize,
}

/// Returns the request headers that the log leaves out, for an attempt that started at `at`.
pub(crate) fn derived_headers(
    message: &MessageFacts<'_>,
    at: DateTime<Utc>,
) -> Vec<(String, String)> {
    let json = || "application/json".to_owned();
    [
        (header::ACCEPT.as_str(), json()),
        (header::CONTENT_TYPE.as_str(), json()),
        (header::CONTENT_LENGTH.as_str(), message.body_bytes.to_string()),
        (signing::ID_HEADER, message.id.to_owned()),
        (signing::TIMESTAMP_HEADER, at.timestamp().to_string()),
        (SERVICE_ID.as_str(), message.merchant.to_owned()),
        (EVENT.as_str(), message.event.to_owned()),
        (SEQUENCE.as_str(), message.sequence.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

pub(crate) fn parse_headers(log: &str) -> impl Iterator<Item = (String, String)> {
    let lines = log.lines().filter_map(|line| line.split_once(": "));
    lines.map(|(name, value)| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{Authentication, Endpoint};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn logged(pairs: &[(&'static str, &str)]) -> String {
        let url = "https://merchant.example/rmas?key=open-sesame".parse().unwrap();
        let bearer = Authentication::Bearer("b34r3r-t0k3n".into());
        let endpoint = Endpoint::new(url, Vec::new(), &bearer, &[]).unwrap();
        response_headers(&headers(pairs), &SentSecrets::new(&endpoint, None))
    }

    #[test]
    fn secrets_in_response_headers_are_masked() {
        let log = logged(&[
            ("content-type", "text/html"),
            ("set-cookie", "id=1"),
            ("x-session-id", "2"),
            ("x-refresh-token", "3"),
            ("authorization", "Basic 4"),
            ("www-authenticate", "Bearer realm=\"shop\""),
            ("location", "/login?next=key=open-sesame"),
            ("x-echo", "Bearer b34r3r-t0k3n"),
        ]);
        let parsed: Vec<_> = parse_headers(&log).collect();
        let expected = [
            ("content-type", "text/html"),
            ("set-cookie", MASK),
            ("x-session-id", MASK),
            ("x-refresh-token", MASK),
            ("authorization", MASK),
            ("www-authenticate", "Bearer realm=\"shop\""),
            ("location", "/login?next=********"),
            ("x-echo", "Bearer ********"),
        ];
        assert_eq!(parsed, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn logged_headers_are_bounded() {
        let long = "x".repeat(10_000);
        let log = logged(&[
            ("x-1", long.as_str()),
            ("x-2", long.as_str()),
            ("x-3", long.as_str()),
            ("x-4", long.as_str()),
            ("server", "nginx"),
        ]);
        let sizes: Vec<_> = parse_headers(&log).map(|(name, value)| (name, value.len())).collect();
        let expected = [("x-1", 512), ("x-2", 512), ("x-3", 512), ("server", 5)];
        assert_eq!(sizes, expected.map(|(name, size)| (name.to_owned(), size)));
        assert!(log.len() <= MAX_LOGGED_BYTES);
    }
}
