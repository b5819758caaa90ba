//! What was found wrong with a document, field by field.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A report holds at most this many fields; the rest are counted.
const MAX_ERRORS: usize = 10_000;
/// And at most about this many bytes of paths and details.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// One field that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// JSONPath of the field from the root of the body.
    #[schema(example = "$.returns_portal_order.orders[0].items[2].sku")]
    pub field: String,
    pub code: Code,
    /// The same for a human reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub detail: Option<String>,
}

impl FieldError {
    /// A field whose value is of the right type but not acceptable.
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

/// Why a field failed.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    MissingField,
    InvalidType,
    Invalid,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MissingField => "missing_field",
            Self::InvalidType => "invalid_type",
            Self::Invalid => "invalid",
        })
    }
}

/// A document that is JSON but not what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidationError {
    /// Each failing field once, in the order they were read; never empty.
    pub errors: Vec<FieldError>,
    /// How many more fields failed than a report holds.
    pub omitted: usize,
}

impl ValidationError {
    /// What is wrong, if anything is; no longer than a report may be.
    pub fn from_errors(faults: impl IntoIterator<Item = FieldError>) -> Option<Self> {
        let report = Report::default();
        faults.into_iter().for_each(|fault| report.add(fault));
        report.into_invalid()
    }
}

impl From<FieldError> for ValidationError {
    fn from(error: FieldError) -> Self {
        Self { errors: vec![error], omitted: 0 }
    }
}

/// A summary fit for the `message` of an answer.
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

/// Collects faults while a document is read.
#[derive(Debug, Default)]
pub(super) struct Report {
    findings: RefCell<Findings>,
}

#[derive(Debug, Default)]
struct Findings {
    errors: Vec<FieldError>,
    fields: HashSet<String>,
    bytes: usize,
    omitted: usize,
}

impl Report {
    /// Adds a fault, unless the field already has one.
    pub(super) fn add(&self, error: FieldError) {
        let mut findings = self.findings.borrow_mut();
        if findings.errors.len() >= MAX_ERRORS || findings.bytes >= MAX_BYTES {
            findings.omitted += 1;
        } else if findings.fields.insert(error.field.clone()) {
            findings.bytes += error.field.len() + error.detail.as_ref().map_or(0, String::len);
            findings.errors.push(error);
        }
    }

    pub(super) fn into_invalid(self) -> Option<ValidationError> {
        let Findings { errors, omitted, .. } = self.findings.into_inner();
        (!errors.is_empty()).then_some(ValidationError { errors, omitted })
    }
}
