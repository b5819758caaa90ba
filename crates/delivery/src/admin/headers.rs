//! Headers of requests and responses, as the API shows them.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::attempt::{MessageFacts, derived_headers, parse_headers};

/// A header of a request or response.
#[derive(Debug, Serialize, PartialEq, Eq, PartialOrd, Ord, ToSchema)]
pub(crate) struct HeaderView {
    name: String,
    /// The value, or `********` for a secret.
    value: String,
}

impl From<(String, String)> for HeaderView {
    fn from((name, value): (String, String)) -> Self {
        Self { name, value }
    }
}

/// Returns the headers of a request that started at `at`, by name; none if no request was made.
pub(super) fn request_headers(
    log: &str,
    message: &MessageFacts<'_>,
    at: DateTime<Utc>,
) -> Vec<HeaderView> {
    let mut headers: Vec<_> = parse_headers(log).map(HeaderView::from).collect();
    if !headers.is_empty() {
        headers.extend(derived_headers(message, at).into_iter().map(HeaderView::from));
        headers.sort();
    }
    headers
}

pub(super) fn response_headers(log: &str) -> Vec<HeaderView> {
    parse_headers(log).map(HeaderView::from).collect()
}
