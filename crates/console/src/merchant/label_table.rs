//! The labels of return reasons by language, as a table in the form of the appearance.

use std::collections::BTreeMap;

use pages::{
    api::ErrorBody,
    form::{Field, Fields},
};

use super::policy_form::Reason;
use crate::error::{error_below, sentence};

/// The languages of portals with their names.
pub(super) const LANGUAGES: [(&str, &str); 4] =
    [("en", "English"), ("de", "German"), ("fr", "French"), ("es", "Spanish")];

const PATH: &str = "$.appearance.reason_labels";
const MAX_REASONS: usize = 100;

/// Labels by the code of a reason and the language.
type Labels<'a> = BTreeMap<&'a str, BTreeMap<&'static str, &'a str>>;

#[derive(Debug, Clone)]
pub(super) struct LabelRow {
    pub(super) code: String,
    /// The label of the reason in the settings, for languages without a label.
    pub(super) label: String,
    /// One field for each of [`LANGUAGES`].
    pub(super) fields: Vec<Field>,
}

impl LabelRow {
    /// The labels that are not empty, by language.
    fn labels(&self) -> BTreeMap<&'static str, &str> {
        let labels = LANGUAGES.iter().zip(&self.fields);
        let filled = labels.filter(|(_, field)| !field.value.is_empty());
        filled.map(|((language, _), field)| (*language, field.value.as_str())).collect()
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct LabelTable {
    pub(super) rows: Vec<LabelRow>,
    pub(super) error: Option<String>,
}

impl LabelTable {
    /// The table with the present labels.
    pub(super) fn of(
        labels: &BTreeMap<String, BTreeMap<String, String>>,
        reasons: &[Reason],
    ) -> Self {
        Self::new(reasons, |code, language| {
            labels.get(code).and_then(|labels| labels.get(language)).cloned().unwrap_or_default()
        })
    }

    /// The table as it was sent. The form has the reasons of the time when it was opened, so each row
    /// names its code.
    pub(super) fn read(fields: &Fields, reasons: &[Reason]) -> Self {
        Self::new(reasons, |code, language| {
            let is_row = |row: &usize| fields.text(&format!("label_{row}_code")) == code;
            let row = (1..=MAX_REASONS).find(is_row);
            row.map(|row| fields.text(&format!("label_{row}_{language}")).to_owned())
                .unwrap_or_default()
        })
    }

    /// The labels in one line: "TOO_SMALL (de): Zu klein".
    pub(super) fn text(&self) -> String {
        let labels = self.rows.iter().flat_map(|row| {
            let label = move |(language, label)| format!("{} ({language}): {label}", row.code);
            row.labels().into_iter().map(label)
        });
        labels.collect::<Vec<_>>().join(", ")
    }

    fn new(reasons: &[Reason], value: impl Fn(&str, &str) -> String) -> Self {
        let row = |reason: &Reason| {
            let field = |(language, _): &(&str, &str)| Field::new(value(&reason.code, language));
            LabelRow {
                code: reason.code.clone(),
                label: reason.label.clone(),
                fields: LANGUAGES.iter().map(field).collect(),
            }
        };
        Self { rows: reasons.iter().map(row).collect(), error: None }
    }

    /// The labels that are not empty.
    pub(super) fn body(&self) -> Labels<'_> {
        let labels = self.rows.iter().map(|row| (row.code.as_str(), row.labels()));
        labels.filter(|(_, labels)| !labels.is_empty()).collect()
    }

    /// Puts the errors of auth beside the fields.
    pub(super) fn reject(&mut self, body: &ErrorBody) {
        for row in &mut self.rows {
            let quoted = row.code.replace('\\', "\\\\").replace('\'', "\\'");
            let paths = [format!("{PATH}.{}", row.code), format!("{PATH}['{quoted}']")];
            for ((language, _), field) in LANGUAGES.iter().zip(&mut row.fields) {
                let error = paths.iter().find_map(|path| body.field(&format!("{path}.{language}")));
                field.error = error.map(|text| sentence(&text));
            }
        }
        let is_shown = self.rows.iter().flat_map(|row| &row.fields).any(|field| !field.is_valid());
        self.error = error_below(body, PATH).filter(|_| !is_shown);
    }
}
