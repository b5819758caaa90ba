//! The page about an invitation link that does not work any more.

use actix_web::http::StatusCode;
use askama::Template;
use pages::api::ApiError;

use crate::{PageError, PageResult, error::Bare, html_with};

#[derive(Template)]
#[template(path = "invitation_over.html")]
pub(super) struct OverPage {
    page: Bare,
    /// Whether nobody can have a password, so that no invitation works.
    passwords_off: bool,
}

impl OverPage {
    pub(super) fn show(&self) -> PageResult {
        let status = if self.passwords_off { StatusCode::FORBIDDEN } else { StatusCode::NOT_FOUND };
        html_with(status, self)
    }
}

/// The page about a link that does not work any more.
pub(super) fn over(error: ApiError) -> Result<OverPage, PageError> {
    let passwords_off = match error {
        ApiError::NotFound | ApiError::Invalid(_) => false,
        ApiError::Denied(_) => true,
        error => return Err(error.into()),
    };
    Ok(OverPage { page: Bare::new(), passwords_off })
}
