//! Headers of requests and responses, as the API shows them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::attempt::parse_headers;

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

/// Returns the logged and the derived headers of a request, by name; none if no request was made.
pub(super) fn request_headers(log: &str, derived: Vec<(String, String)>) -> Vec<HeaderView> {
    let mut headers = response_headers(log);
    if !headers.is_empty() {
        headers.extend(derived.into_iter().map(HeaderView::from));
        headers.sort();
    }
    headers
}

/// Returns the logged headers of a response.
pub(super) fn response_headers(log: &str) -> Vec<HeaderView> {
    parse_headers(log).map(HeaderView::from).collect()
}
