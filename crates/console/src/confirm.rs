//! The question before a change that is hard to undo, and the page that shows a new secret once.

use actix_web::http::StatusCode;
use askama::Template;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Page, PageResult, form_key::FormKey, html_with};

/// A page that says what a button does before it does it. The form goes to the URL of the page itself.
#[derive(Template)]
#[template(path = "confirm.html")]
pub(crate) struct ConfirmPage {
    pub(crate) page: Page,
    pub(crate) title: String,
    /// The effects, one sentence each.
    pub(crate) effects: Vec<String>,
    pub(crate) button: &'static str,
    /// The key of a form that creates something.
    pub(crate) key: Option<FormKey>,
    /// The choices of a change that rotates a secret.
    pub(crate) rotation: Option<RotateForm>,
    /// The version of the merchant that the person has seen, if the change depends on it.
    pub(crate) version: Option<String>,
    /// The reason why nothing was changed.
    pub(crate) problem: Option<String>,
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

impl ConfirmPage {
    pub(crate) fn show(&self) -> PageResult {
        let is_in_use = self.rotation.as_ref().is_some_and(|rotation| rotation.in_use);
        let is_refused = is_in_use || self.problem.is_some();
        html_with(if is_refused { StatusCode::CONFLICT } else { StatusCode::OK }, self)
    }
}

/// The form of a rotation.
#[derive(Deserialize)]
pub(crate) struct RotateForm {
    pub(crate) key: FormKey,
    /// How long the previous secret stays valid.
    overlap_seconds: u32,
    /// Whether a secret ends at once even if it is in use.
    #[serde(default)]
    force: bool,
    /// Whether auth refused the rotation, because a secret that would end is in use.
    #[serde(skip)]
    in_use: bool,
}

impl Default for RotateForm {
    fn default() -> Self {
        Self { key: FormKey::random(), overlap_seconds: 86_400, force: false, in_use: false }
    }
}

impl RotateForm {
    /// The choices for the overlap.
    const OVERLAPS: [(u32, &'static str); 4] = [
        (86_400, "one day"),
        (604_800, "seven days"),
        (3600, "one hour"),
        (0, "no time: it stops working now"),
    ];

    /// The form after auth refused it, which can force the rotation.
    pub(crate) fn refused(self) -> Self {
        Self { key: FormKey::random(), in_use: true, ..self }
    }

    pub(crate) fn body(&self) -> Value {
        json!({ "overlap_seconds": self.overlap_seconds, "force": self.force })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    const KEY: &str = "key=7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";

    fn page(rotation: RotateForm) -> ConfirmPage {
        ConfirmPage {
            page: fixtures::page(&fixtures::signed_in("operator", None, &json!({}))),
            title: "Rotate?".to_owned(),
            effects: Vec::new(),
            button: "Rotate",
            key: None,
            rotation: Some(rotation),
            version: None,
            problem: None,
            back: "/back".to_owned(),
        }
    }

    #[test]
    fn a_secret_in_use_can_be_ended_with_a_second_form() {
        let first = page(RotateForm::default());
        assert!(!first.render().unwrap().contains(r#"name="force""#));
        assert_eq!(first.show().unwrap().status(), StatusCode::OK);
        let sent: RotateForm =
            serde_html_form::from_str(&format!("{KEY}&overlap_seconds=0")).unwrap();
        assert_eq!(sent.body(), json!({ "overlap_seconds": 0, "force": false }));
        assert_eq!(format!("key={}", sent.key), KEY);
        let second = page(sent.refused());
        let text = second.render().unwrap();
        assert!(text.contains(r#"name="force""#) && text.contains("still in use"), "{text}");
        assert!(text.contains(r#"<option value="0" selected>"#), "{text}");
        assert_eq!(second.show().unwrap().status(), StatusCode::CONFLICT);
        let sent = format!("{KEY}&overlap_seconds=0&force=true");
        let sent: RotateForm = serde_html_form::from_str(&sent).unwrap();
        assert_eq!(sent.body(), json!({ "overlap_seconds": 0, "force": true }));
    }
}
