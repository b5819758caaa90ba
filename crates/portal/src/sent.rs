//! The parameters of a step: the choices, and the fields of the form that leads to it.
//!
//! They are in the query, so that Back and reload work. A form whose fields do not fit into a URL sends
//! them in its body.

use std::{future::Future, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use pages::form::{Fields, FormError};
use platform::http::read_body;
use url::form_urlencoded;

use crate::{draft::ReturnDraft, error::PageError};

/// A form with fixed fields.
pub(crate) type Form<T> = pages::form::Form<T, PageError>;

/// The parameters of a step. Handlers for `GET` and `POST` can take it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    pub(crate) draft: ReturnDraft,
    pub(crate) fields: Fields,
}

impl Sent {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fields = form_urlencoded::parse(text.as_bytes());
        let fields = fields.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        Some(Self { draft: ReturnDraft::parse(text)?, fields })
    }

    /// Whether the browser runs scripts, which load some parts of a page later.
    pub(crate) fn has_scripts(&self) -> bool {
        self.fields.is_checked("js")
    }
}

impl FromRequest for Sent {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let payload = payload.take();
        Box::pin(async move {
            let body = read_body(&request, payload).await.map_err(FormError::from)?;
            let query = request.query_string();
            let body = String::from_utf8_lossy(&body);
            Self::parse(&format!("{query}&{body}")).ok_or(PageError::BadForm)
        })
    }
}

/// A field that has to be corrected: its id, and a text that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) id: String,
    pub(crate) text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_and_body_are_read_together() {
        let sent = Sent::parse("i=A~1~1&js=1&count.A~1=2").unwrap();
        assert_eq!(sent.draft.choices.len(), 1);
        assert_eq!(sent.fields.text("count.A~1"), "2");
        assert!(sent.has_scripts());
        let sent = Sent::parse("&").unwrap();
        assert!(sent.draft.choices.is_empty() && !sent.has_scripts());
        assert!(Sent::parse("i=A~1~1&i=A~1~1").is_none());
    }
}
