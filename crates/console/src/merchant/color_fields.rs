//! The colours in the form of the appearance.

use std::collections::BTreeMap;

use domain::merchant::{Color, Colors};
use pages::{api::ErrorBody, form::Field, path};
use url::form_urlencoded;

use crate::error::sentence;

/// The keys of the colours, with label and hint.
const COLORS: [(&str, &str, &str); 4] = [
    ("primary", "Primary colour", "The head of the page and the buttons."),
    (
        "text_on_primary",
        "Text on the primary colour",
        "Contrast to the primary colour at least 4.5:1.",
    ),
    ("background", "Background", "The page behind everything."),
    ("text", "Text", "Contrast to the background at least 4.5:1."),
];

/// A text that is not empty.
fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

#[derive(Debug, Clone)]
pub(super) struct ColorField {
    pub(super) key: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) field: Field,
}

impl ColorField {
    /// The value of the colour picker, which needs six digits.
    pub(super) fn picker_value(&self) -> String {
        let color = self.field.value.parse::<Color>().map(|color| color.to_string());
        color.unwrap_or_else(|_| "#000000".to_owned())
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct ColorFields(pub(super) Vec<ColorField>);

impl ColorFields {
    pub(super) fn new(value: impl Fn(&str) -> String) -> Self {
        let field =
            |(key, label, hint)| ColorField { key, label, hint, field: Field::new(value(key)) };
        Self(COLORS.into_iter().map(field).collect())
    }

    /// The colours. An empty field restores the default.
    pub(super) fn body(&self) -> BTreeMap<&'static str, Option<&str>> {
        self.0.iter().map(|color| (color.key, filled(&color.field.value))).collect()
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        for color in &mut self.0 {
            let path = format!("$.appearance.colors.{}", color.key);
            color.field.error = body.field(&path).map(|text| sentence(&text));
        }
    }

    /// Puts the errors that saving the colours would have beside the fields.
    pub(super) fn check(&mut self) {
        let low = self.valid().low_contrasts().collect::<Vec<_>>();
        for color in &mut self.0 {
            let text = color.field.value.as_str();
            let error = match text.parse::<Color>() {
                Err(error) if !text.is_empty() => Some(error.to_string()),
                _ => low
                    .iter()
                    .find(|error| error.field.ends_with(&format!(".{}", color.key)))
                    .and_then(|error| error.detail.clone()),
            };
            color.field.error = error.map(|text| sentence(&text));
        }
    }

    /// The typed colours. A text that is not a colour counts as the default.
    fn valid(&self) -> Colors {
        let default = Colors::default();
        let color = |key: &str, default: Color| {
            let field = self.0.iter().find(|color| color.key == key);
            field.and_then(|color| color.field.value.parse().ok()).unwrap_or(default)
        };
        Colors {
            primary: color("primary", default.primary),
            text_on_primary: color("text_on_primary", default.text_on_primary),
            background: color("background", default.background),
            text: color("text", default.text),
        }
    }

    /// The URL of the preview's style sheet.
    pub(super) fn preview_url(&self, merchant: &str) -> String {
        let Colors { primary, text_on_primary, background, text } = self.valid();
        let values = [primary, text_on_primary, background, text];
        let mut query = form_urlencoded::Serializer::new(String::new());
        for ((key, ..), value) in COLORS.iter().zip(values) {
            query.append_pair(key, &value.to_string());
        }
        let path = path!("merchants", merchant, "appearance", "preview.css");
        format!("/{path}?{}", query.finish())
    }
}
