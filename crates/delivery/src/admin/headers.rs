//! Headers of requests and responses, as the API shows them.

use api::delivery::HeaderView;

use crate::attempt::parse_headers;

fn header((name, value): (String, String)) -> HeaderView {
    HeaderView { name, value }
}

/// Returns the logged and the derived headers of a request, by name; none if no request was made.
pub(super) fn request_headers(log: &str, derived: Vec<(String, String)>) -> Vec<HeaderView> {
    let mut headers = response_headers(log);
    if !headers.is_empty() {
        headers.extend(derived.into_iter().map(header));
        headers.sort();
    }
    headers
}

/// Returns the logged headers of a response.
pub(super) fn response_headers(log: &str) -> Vec<HeaderView> {
    parse_headers(log).map(header).collect()
}
