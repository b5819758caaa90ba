//! The page about an invitation link that does not work any more.

use actix_web::http::StatusCode;
use askama::Template;
use pages::api::ApiError;

use crate::{PageError, PageResult, error::Bare, html_with};

#[derive(Template)]
#[template(path = "invitation_over.html")]
pub(super) struct OverPage {
    page: Bare,
    reason: Reason,
}

/// The reason why a link does not work.
enum Reason {
    /// Nobody can have a password, so no invitation works.
    PasswordsOff,
    /// The same form was sent before, with another password.
    Accepted,
    /// The invitation was used or replaced, or has expired.
    Ended,
}

impl OverPage {
    pub(super) fn show(&self) -> PageResult {
        let status = match self.reason {
            Reason::PasswordsOff => StatusCode::FORBIDDEN,
            Reason::Accepted => StatusCode::CONFLICT,
            Reason::Ended => StatusCode::NOT_FOUND,
        };
        html_with(status, self)
    }
}

/// The page about a link that does not work any more.
pub(super) fn over(error: ApiError) -> Result<OverPage, PageError> {
    let reason = match error {
        ApiError::NotFound | ApiError::Invalid(_) => Reason::Ended,
        ApiError::Conflict(_) => Reason::Accepted,
        ApiError::Denied(_) => Reason::PasswordsOff,
        error => return Err(error.into()),
    };
    Ok(OverPage { page: Bare::new(), reason })
}
