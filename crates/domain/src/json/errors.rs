//! The errors of invalid fields, and the report that collects them.
//!
//! See docs/decisions/json-validation.md.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

/// The maximum number of errors in a report. Further errors are only counted.
const MAX_ERRORS: usize = 10_000;
/// The number of bytes of paths and details after which further errors are only counted.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// An invalid field and the reason.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// JSONPath of the field from the root of the body.
    #[schema(example = "$.returns_portal_order.orders[0].items[2].sku")]
    pub field: String,
    pub code: Code,
    /// The reason in words.
    #[schema(nullable = false)]
    pub detail: Option<String>,
}

impl FieldError {
    /// An error of a field that has the right type and an invalid value.
    pub fn invalid(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { field: field.into(), code: Code::Invalid, detail: Some(detail.into()) }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.code)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

crate::words! {
    pub enum Code as "snake_case" {
        MissingField,
        InvalidType,
        Invalid,
    }
}

/// The invalid fields of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationError {
    /// One error per invalid field, in the order in which the fields were read. Never empty.
    pub errors: Vec<FieldError>,
    /// The number of further errors that did not fit into the report.
    pub omitted: usize,
}

impl ValidationError {
    /// Collects errors up to the limits of a report. Without errors the result is `None`.
    pub fn from_errors(errors: impl IntoIterator<Item = FieldError>) -> Option<Self> {
        let report = Report::default();
        errors.into_iter().for_each(|error| report.add(error));
        report.into_error()
    }
}

impl From<FieldError> for ValidationError {
    fn from(error: FieldError) -> Self {
        Self { errors: vec![error], omitted: 0 }
    }
}

/// A summary for the `message` of an HTTP response.
impl fmt::Display for ValidationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.errors.len(), self.omitted) {
            (1, 0) => f.write_str("1 field is not valid"),
            (count, 0) => write!(f, "{count} fields are not valid"),
            (listed, omitted) => {
                let count = listed + omitted;
                write!(f, "{count} fields are not valid, of which the first {listed} are listed")
            }
        }
    }
}

impl std::error::Error for ValidationError {}

/// Collects errors while a document is read.
#[derive(Debug, Default)]
pub(super) struct Report {
    collected: RefCell<Collected>,
}

#[derive(Debug, Default)]
struct Collected {
    errors: Vec<FieldError>,
    fields: HashSet<String>,
    bytes: usize,
    omitted: usize,
}

impl Report {
    /// Adds an error, unless its field already has one.
    pub(super) fn add(&self, error: FieldError) {
        self.add_with(|| error);
    }

    /// As [`add`](Self::add). A full report only counts the error, so that a document with a hundred thousand
    /// invalid fields does not cost a hundred thousand texts.
    pub(super) fn add_with(&self, error: impl FnOnce() -> FieldError) {
        let mut collected = self.collected.borrow_mut();
        if collected.errors.len() >= MAX_ERRORS || collected.bytes >= MAX_BYTES {
            collected.omitted += 1;
            return;
        }
        let error = error();
        if collected.fields.insert(error.field.clone()) {
            collected.bytes += error.field.len() + error.detail.as_ref().map_or(0, String::len);
            collected.errors.push(error);
        }
    }

    pub(super) fn into_error(self) -> Option<ValidationError> {
        let Collected { errors, omitted, .. } = self.collected.into_inner();
        (!errors.is_empty()).then_some(ValidationError { errors, omitted })
    }
}
