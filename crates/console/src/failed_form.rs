//! A form that may have to be sent again. The page about the failure shows its fields.

use actix_web::http::StatusCode;
use pages::api::Service;

/// A form with its fields, and the reason why it may have to be sent again.
#[derive(Debug)]
pub(crate) struct FailedForm {
    pub(crate) problem: Problem,
    pub(crate) action: String,
    pub(crate) fields: Vec<(String, String)>,
}

/// The reason why a form may have to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The session ended while the form was filled in.
    SessionEnded,
    /// The form was not passed on, because auth does not respond.
    NotDone(Service),
    /// The service did not respond to the change, so it may have made it.
    Unknown(Service),
    TooManyRequests,
}

impl Problem {
    /// Title and explanation.
    pub(crate) fn text(self) -> (&'static str, String) {
        match self {
            Self::SessionEnded => (
                "Your session ended",
                "Nothing was changed. Sign in again in a new tab, come back to this page and send the \
                 form again. Passwords and codes have to be typed again."
                    .to_owned(),
            ),
            Self::NotDone(service) => (
                "A service does not respond",
                format!(
                    "The service {service} is not available now. Nothing was changed. Send the form \
                     again in a moment."
                ),
            ),
            Self::Unknown(service) => (
                "It is not known whether this was done",
                format!(
                    "The service {service} did not respond. Look in a new tab whether the change was \
                     made before you send the form again. Passwords and codes have to be typed again."
                ),
            ),
            Self::TooManyRequests => (
                "Too many requests",
                "Wait a minute and send the form again. Passwords and codes have to be typed again."
                    .to_owned(),
            ),
        }
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::SessionEnded => StatusCode::UNAUTHORIZED,
            Self::NotDone(_) | Self::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
        }
    }
}
