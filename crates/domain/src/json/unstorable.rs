//! Values that PostgreSQL cannot store unchanged: NUL characters, and numbers outside the signed
//! 64-bit range.

use super::errors::{FieldError, Report};
use super::path::Path;
use super::tree::JsonValue;

/// The first magnitude outside the signed 64-bit range.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Reports every unstorable value and key, also in unknown fields.
pub(super) fn report_unstorable(value: JsonValue<'_>, path: &Path<'_>, report: &Report) {
    match value {
        JsonValue::String(text) if has_nul(text) => {
            report.add(FieldError::invalid(path.to_string(), "must not hold a NUL character"));
        }
        _ if is_too_large(value) => {
            report.add(FieldError::invalid(path.to_string(), "is outside the 64-bit range"));
        }
        JsonValue::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                report_unstorable(element, &Path::Index(path, index), report);
            }
        }
        JsonValue::Object(members) => {
            for (key, member) in members.iter() {
                let path = Path::Key(path, key);
                if has_nul(key) {
                    let detail = "the key must not hold a NUL character";
                    report.add(FieldError::invalid(path.to_string(), detail));
                    // A second error of the same field would only be counted as omitted.
                    if is_unstorable(member) {
                        continue;
                    }
                }
                report_unstorable(member, &path, report);
            }
        }
        _ => {}
    }
}

pub(super) fn has_unstorable(value: JsonValue<'_>) -> bool {
    match value {
        JsonValue::Array(elements) => elements.iter().any(has_unstorable),
        JsonValue::Object(members) => {
            members.iter().any(|(key, value)| has_nul(key) || has_unstorable(value))
        }
        _ => is_unstorable(value),
    }
}

/// Whether the value itself is unstorable, not one of its parts.
pub(super) fn is_unstorable(value: JsonValue<'_>) -> bool {
    match value {
        JsonValue::String(text) => has_nul(text),
        _ => is_too_large(value),
    }
}

pub(super) fn has_nul(text: &str) -> bool {
    text.as_bytes().contains(&0)
}

pub(super) fn is_too_large_float(float: f64) -> bool {
    float.abs() >= TOO_LARGE
}

fn is_too_large(value: JsonValue<'_>) -> bool {
    match value {
        JsonValue::Unsigned(_) => true,
        JsonValue::Float(float) => is_too_large_float(float),
        _ => false,
    }
}
