//! Forms that browsers send, and form values together with their errors, so that a rejected form keeps the
//! typed text.

use std::{future::Future, marker::PhantomData, pin::Pin};

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use platform::http::{BodyError, read_body};
use serde::{Deserialize, de::DeserializeOwned};

/// A form. Its body is read within the limits of the HTTP settings. Sites use it with their own error:
/// `type Form<T> = pages::form::Form<T, PageError>`.
#[derive(Debug)]
pub struct Form<T, E>(pub T, PhantomData<E>);

/// The reason why a form could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    #[error(transparent)]
    Body(#[from] BodyError),
    #[error("a field is missing or cannot be read")]
    Fields(#[from] serde_html_form::de::Error),
}

impl<T, E> FromRequest for Form<T, E>
where
    T: DeserializeOwned + 'static,
    E: From<FormError> + Into<actix_web::Error> + 'static,
{
    type Error = E;
    type Future = Pin<Box<dyn Future<Output = Result<Self, E>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let payload = payload.take();
        Box::pin(async move {
            let body = read_body(&request, payload).await.map_err(FormError::from)?;
            let form = serde_html_form::from_bytes(&body).map_err(FormError::from)?;
            Ok(Self(form, PhantomData))
        })
    }
}

/// One field of a form as the template shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Field {
    pub value: String,
    pub error: Option<String>,
}

impl Field {
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), error: None }
    }

    /// Sets the error, unless the field has one.
    pub fn reject(&mut self, error: impl Into<String>) {
        self.error.get_or_insert_with(|| error.into());
    }

    pub fn is_valid(&self) -> bool {
        self.error.is_none()
    }
}

/// The fields of a form as they were sent, for forms whose fields are not fixed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Fields(Vec<(String, String)>);

impl Fields {
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    /// The names and values in the order in which they were sent, for a form that is sent again.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.0
    }

    /// The text of a field without white space around it. A missing field is empty.
    pub fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim())
    }

    /// Whether a check box is ticked. Browsers send only ticked ones.
    pub fn is_checked(&self, name: &str) -> bool {
        !self.text(name).is_empty()
    }
}

impl FromIterator<(String, String)> for Fields {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}
