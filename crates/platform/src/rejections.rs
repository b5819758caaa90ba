//! Requests that are rejected because of their token, their rights or a rate limit. Each one is logged
//! with its client and counted in the metric `http_rejections`.

use std::{net::IpAddr, sync::OnceLock};

use actix_web::{HttpMessage as _, HttpRequest, dev::ServiceResponse, http::StatusCode};
use domain::access::MerchantId;
use opentelemetry::{KeyValue, metrics::Counter};

use crate::telemetry;

/// Longer client ids are truncated in the log.
const MAX_CLIENT_ID: usize = 64;

/// The reason of a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    MissingToken,
    InvalidToken,
    InsufficientScope,
    RateLimited,
    /// Another limit or the capacity of the process is reached.
    OverCapacity,
    /// The client id or the client secret is wrong.
    InvalidClient,
    /// A person could not sign in.
    SignInFailed,
    /// Too many wrong secrets came from this address.
    LockedOut,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::MissingToken => "missing_token",
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
            Self::RateLimited => "rate_limited",
            Self::OverCapacity => "over_capacity",
            Self::InvalidClient => "invalid_client",
            Self::SignInFailed => "sign_in_failed",
            Self::LockedOut => "locked_out",
        }
    }

    /// The reason of a response for which none was recorded.
    fn of_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::UNAUTHORIZED => Some(Self::InvalidToken),
            StatusCode::FORBIDDEN => Some(Self::InsufficientScope),
            StatusCode::TOO_MANY_REQUESTS => Some(Self::OverCapacity),
            _ => None,
        }
    }
}

/// A rejected request and the client that sent it, as far as it is known.
#[derive(Debug, Clone)]
pub(super) struct Rejection {
    reason: Reason,
    client_id: Option<String>,
    merchant: Option<String>,
}

/// Records the reason of a rejection and the client, as far as it is known. The middleware logs and counts
/// every rejection; without this call it takes the reason from the status.
pub fn record(
    request: &HttpRequest,
    reason: Reason,
    client_id: Option<&str>,
    merchant: Option<&MerchantId>,
) {
    let client_id = client_id.map(|id| id.chars().take(MAX_CLIENT_ID).collect());
    let merchant = merchant.map(ToString::to_string);
    request.extensions_mut().insert(Rejection { reason, client_id, merchant });
}

impl Rejection {
    /// The rejection that a response is, if it is one.
    pub(super) fn of<B>(response: &ServiceResponse<B>) -> Option<Self> {
        let recorded = response.request().extensions().get::<Self>().cloned();
        recorded.or_else(|| {
            let reason = Reason::of_status(response.status())?;
            Some(Self { reason, client_id: None, merchant: None })
        })
    }

    /// Adds the client that a valid token names.
    pub(super) fn with_client(self, client_id: &str, merchant: Option<&MerchantId>) -> Self {
        Self {
            client_id: self.client_id.or_else(|| Some(client_id.to_owned())),
            merchant: self.merchant.or_else(|| merchant.map(ToString::to_string)),
            ..self
        }
    }

    pub(super) fn log_and_count(self, address: IpAddr, method: &str, route: &str) {
        let Self { reason, client_id, merchant } = self;
        let reason = reason.as_str();
        tracing::info!(
            reason,
            client_id,
            merchant,
            remote_address = %address,
            method,
            route,
            "request rejected: {reason}"
        );
        counter().add(1, &[KeyValue::new("reason", reason)]);
    }
}

fn counter() -> &'static Counter<u64> {
    static COUNTER: OnceLock<Counter<u64>> = OnceLock::new();
    COUNTER.get_or_init(|| {
        telemetry::meter()
            .u64_counter("http_rejections")
            .with_description("Requests rejected because of a token, a scope or a rate limit")
            .build()
    })
}
