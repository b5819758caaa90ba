//! Checks of endpoints.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::HeaderView;

/// Results of an endpoint check, one for each endpoint.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct EndpointCheck {
    pub results: Vec<EndpointCheckResult>,
}

/// Result of sending one sample, or of requesting variants.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct EndpointCheckResult {
    /// Kind of the sample, or `exchange-variants`.
    pub kind: String,
    /// URL of the request without its query string.
    pub endpoint: Option<String>,
    /// Whether the endpoint accepted the sample.
    pub accepted: bool,
    /// `not_set` if the merchant has no such endpoint, `invalid_response` if its variants cannot be
    /// read.
    pub outcome: String,
    /// HTTP status code of the response.
    pub status: Option<u16>,
    pub detail: String,
    /// The part of the request that the endpoint refused. Null unless it responded with 401 or 403, or with
    /// another 4xx status and a body that names the signature.
    pub refused: Option<RefusedPart>,
    /// The remedy in words, if the endpoint refused a part of the request.
    pub remedy: Option<String>,
    /// Headers of the request as sent, by name. Empty if there was no request.
    pub request_headers: Vec<HeaderView>,
    /// The sample. Empty for variants.
    pub request_body: String,
    /// Headers of the response, up to 2 KiB. Empty without a response.
    pub response_headers: Vec<HeaderView>,
    /// First bytes of the response body.
    pub response_body: String,
    pub latency_ms: u64,
    /// Variants that are left out, fields that are ignored, and a client certificate that expires soon.
    pub warnings: Vec<String>,
}

/// The part of a request that an endpoint refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RefusedPart {
    /// The response names the signature, or the request had no credentials.
    Signature,
    /// The response asks for credentials.
    Credentials,
    /// The response does not say which.
    Unknown,
}
