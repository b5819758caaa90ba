//! Views of a document that know where they stand and report what is wrong there.

use super::errors::{Code, FieldError, Report};
use super::parser::is_unstorable;
use super::path::Path;
use super::tree::{JsonValue, Members};

/// One value of a document. A kind of field is a function `Field -> Option<T>` that reports what
/// is wrong before it returns `None`. A value that nobody may send was reported before any was read.
#[derive(Debug, Clone, Copy)]
pub struct Field<'a> {
    value: JsonValue<'a>,
    path: Path<'a>,
    report: &'a Report,
}

impl<'a> Field<'a> {
    pub(super) fn new(value: JsonValue<'a>, path: Path<'a>, report: &'a Report) -> Self {
        Self { value, path, report }
    }

    pub fn value(&self) -> JsonValue<'a> {
        self.value
    }

    /// Reports that the value is of the right type but not acceptable: `return field.invalid(…)`.
    pub fn invalid<T>(&self, detail: impl Into<String>) -> Option<T> {
        if !is_unstorable(self.value) {
            self.report.add(FieldError::invalid(self.path.to_string(), detail));
        }
        None
    }

    /// Reports a value of another type: `return field.wrong_type("a string")`.
    pub fn wrong_type<T>(&self, expected: &str) -> Option<T> {
        if is_unstorable(self.value) {
            return None;
        }
        let found = match self.value {
            JsonValue::Null => "null",
            JsonValue::Bool(_) => "a boolean",
            JsonValue::Fraction(_) => "a number with a fraction",
            JsonValue::Integer(_) | JsonValue::Large(_) => "an integer",
            JsonValue::String(_) => "a string",
            JsonValue::Array(_) => "an array",
            JsonValue::Object(_) => "an object",
        };
        self.report.add(FieldError {
            field: self.path.to_string(),
            code: Code::InvalidType,
            detail: Some(format!("expected {expected}, found {found}")),
        });
        None
    }

    /// The same value as an object, when it is one.
    pub(super) fn as_object(&self) -> Option<Object<'a>> {
        let JsonValue::Object(members) = self.value else { return None };
        Some(Object { members, path: self.path, report: self.report })
    }

    /// Reads an element of this array.
    pub(super) fn element<T>(
        &self,
        index: usize,
        value: JsonValue<'_>,
        kind: &mut impl FnMut(Field<'_>) -> Option<T>,
    ) -> Option<T> {
        kind(Field::new(value, Path::Index(&self.path, index), self.report))
    }
}

/// An object of a document, read key by key.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    members: Members<'a>,
    path: Path<'a>,
    report: &'a Report,
}

impl Object<'_> {
    /// Reads a field that must be there. `None` means that it failed and is reported.
    pub fn required<T>(
        &self,
        key: &str,
        mut kind: impl FnMut(Field<'_>) -> Option<T>,
    ) -> Option<T> {
        match self.members.get(key) {
            Some(value) => kind(Field::new(value, Path::Key(&self.path, key), self.report)),
            None => {
                self.missing(key);
                None
            }
        }
    }

    /// Reads a field that may be absent or `null`. The outer `None` means that it failed and is
    /// reported.
    pub fn optional<T>(
        &self,
        key: &str,
        mut kind: impl FnMut(Field<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.members.get(key) {
            None | Some(JsonValue::Null) => Some(None),
            Some(value) => {
                kind(Field::new(value, Path::Key(&self.path, key), self.report)).map(Some)
            }
        }
    }

    /// Whether the key is there and not `null`.
    pub fn has(&self, key: &str) -> bool {
        self.members.get(key).is_some_and(|value| !value.is_null())
    }

    /// Whether the key is there and `null`: the caller wants it emptied.
    pub fn is_null(&self, key: &str) -> bool {
        self.members.get(key).is_some_and(JsonValue::is_null)
    }

    /// Every key that is there, with its field.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Field<'_>)> {
        self.members
            .iter()
            .map(|(key, value)| (key, Field::new(value, Path::Key(&self.path, key), self.report)))
    }

    /// Reports every key that is not one of `known`, for documents that only we define.
    pub fn reject_unknown(&self, known: &[&str]) {
        for (key, field) in self.entries() {
            if !known.contains(&key) {
                field.invalid::<()>(format!("unknown field: known are {}", known.join(", ")));
            }
        }
    }

    /// Reports a field as missing, for rules that `required` cannot express.
    pub fn missing(&self, key: &str) {
        let field = Path::Key(&self.path, key).to_string();
        self.report.add(FieldError { field, code: Code::MissingField, detail: None });
    }

    /// Reports a field as invalid, for rules that span several fields.
    pub fn invalid(&self, key: &str, detail: impl Into<String>) {
        self.report.add(self.field_error(key, detail));
    }

    /// The same without reporting it: the caller decides what it means.
    pub fn field_error(&self, key: &str, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(Path::Key(&self.path, key).to_string(), detail)
    }
}
