//! The question before a change that is hard to undo, and the page that shows a new secret once.

use actix_web::HttpResponse;
use askama::Template;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    error::PageError,
    page::{Page, html},
};

/// A page that says what a button does before it does it. The form goes to the URL of the page itself.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct Confirmation {
    pub(crate) page: Page,
    pub(crate) title: String,
    /// The effects, one sentence each.
    pub(crate) effects: Vec<String>,
    pub(crate) button: &'static str,
    /// Whether the change rotates a secret: the form asks how long the previous one stays valid.
    pub(crate) asks_overlap: bool,
    /// The page to go back to.
    pub(crate) back: String,
}

/// A page with values that are shown once.
#[derive(Template)]
#[template(path = "secret.html")]
pub(crate) struct SecretPage {
    pub(crate) page: Page,
    pub(crate) title: String,
    pub(crate) text: String,
    /// Label and value.
    pub(crate) values: Vec<(&'static str, String)>,
    /// Whether the secret signs messages, so that the page shows how to verify them.
    pub(crate) signs_messages: bool,
    /// URL and name of the page to go on to.
    pub(crate) next: (String, &'static str),
}

impl Confirmation {
    pub(crate) fn show(&self) -> Result<HttpResponse, PageError> {
        html(self)
    }
}

/// The form of a rotation.
#[derive(Deserialize)]
pub(crate) struct RotateForm {
    overlap_seconds: u32,
}

impl RotateForm {
    pub(crate) fn body(&self) -> Value {
        json!({ "overlap_seconds": self.overlap_seconds })
    }
}
