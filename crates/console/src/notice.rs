//! Results of forms. A form redirects to a page whose query names the notice, so that a reload does not
//! send the form again. The texts are fixed, so that a link cannot show a text of its own.

use actix_web::{HttpResponse, http::header};
use strum::{EnumString, IntoStaticStr};
use url::form_urlencoded;

/// A notice at the top of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Notice {
    Replayed,
    SentNow,
}

impl Notice {
    pub(crate) fn of(query: &str) -> Option<Self> {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find(|(name, _)| name == "notice").and_then(|(_, value)| value.parse().ok())
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Replayed => "The message is sent again. This page shows each attempt.",
            Self::SentNow => "The message is sent now instead of at its next attempt.",
        }
    }

    /// Leads to `path` and shows this notice there.
    pub(crate) fn redirect(self, path: &str) -> HttpResponse {
        let separator = if path.contains('?') { '&' } else { '?' };
        let name: &'static str = self.into();
        redirect(&format!("{path}{separator}notice={name}"))
    }
}

/// Leads to another page after a form.
pub(crate) fn redirect(path: &str) -> HttpResponse {
    HttpResponse::SeeOther().insert_header((header::LOCATION, path)).finish()
}
