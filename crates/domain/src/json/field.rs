//! Views of a value and of an object that know their path and report errors.

use super::errors::{Code, FieldError, Report};
use super::path::Path;
use super::tree::{JsonValue, Members};
use super::unstorable::is_unstorable;

/// A value of a document. Readers report errors here before they return `None`. Unstorable values
/// are already reported, so further errors of them are dropped.
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

    /// Reports an invalid value of the right type: `return field.invalid(…)`.
    pub fn invalid<T>(&self, detail: impl Into<String>) -> Option<T> {
        if !is_unstorable(self.value) {
            self.report.add(FieldError::invalid(self.path.to_string(), detail));
        }
        None
    }

    /// Reports a value of the wrong type: `return field.wrong_type("a string")`.
    pub fn wrong_type<T>(&self, expected: &str) -> Option<T> {
        if is_unstorable(self.value) {
            return None;
        }
        let found = match self.value {
            JsonValue::Null => "null",
            JsonValue::Bool(_) => "a boolean",
            JsonValue::Float(_) => "a number with a fraction",
            JsonValue::Integer(_) | JsonValue::Unsigned(_) => "an integer",
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

    pub(super) fn as_object(&self) -> Option<Object<'a>> {
        let JsonValue::Object(members) = self.value else { return None };
        Some(Object { members, path: self.path, report: self.report })
    }

    pub(super) fn element<T>(
        &self,
        index: usize,
        value: JsonValue<'_>,
        reader: &mut impl FnMut(Field<'_>) -> Option<T>,
    ) -> Option<T> {
        reader(Field::new(value, Path::Index(&self.path, index), self.report))
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
    /// Reads a required field. `None` means that an error was reported.
    pub fn required<T>(
        &self,
        key: &str,
        mut reader: impl FnMut(Field<'_>) -> Option<T>,
    ) -> Option<T> {
        match self.members.get(key) {
            Some(value) => reader(Field::new(value, Path::Key(&self.path, key), self.report)),
            None => {
                self.missing(key);
                None
            }
        }
    }

    /// Reads a field that may be absent or `null`. The outer `None` means that an error was
    /// reported.
    pub fn optional<T>(
        &self,
        key: &str,
        mut reader: impl FnMut(Field<'_>) -> Option<T>,
    ) -> Option<Option<T>> {
        match self.members.get(key) {
            None | Some(JsonValue::Null) => Some(None),
            Some(value) => {
                reader(Field::new(value, Path::Key(&self.path, key), self.report)).map(Some)
            }
        }
    }

    /// Reads a boolean that is false if it is absent. `null` is an error, because the sender may have meant true:
    /// a request with `"dry_run": null` must not have effects.
    pub fn flag(&self, key: &str) -> Option<bool> {
        match self.members.get(key) {
            None => Some(false),
            Some(JsonValue::Bool(boolean)) => Some(boolean),
            Some(value) => {
                Field::new(value, Path::Key(&self.path, key), self.report).wrong_type("a boolean")
            }
        }
    }

    /// Whether the key is present and not `null`.
    pub fn has(&self, key: &str) -> bool {
        self.members.get(key).is_some_and(|value| !value.is_null())
    }

    /// Reads a field of a partial update: absence keeps the value, `null` clears it. The outermost
    /// `None` means that an error was reported.
    pub fn clearable<T>(
        &self,
        key: &str,
        reader: impl FnMut(Field<'_>) -> Option<T>,
    ) -> Option<Option<Option<T>>> {
        let is_null = self.members.get(key).is_some_and(JsonValue::is_null);
        let value = self.optional(key, reader)?;
        Some((value.is_some() || is_null).then_some(value))
    }

    pub fn entries(&self) -> impl Iterator<Item = (&str, Field<'_>)> {
        self.members
            .iter()
            .map(|(key, value)| (key, Field::new(value, Path::Key(&self.path, key), self.report)))
    }

    /// Reports every key that is not in `known`. Documents of our own API use this.
    pub fn reject_unknown(&self, known: &[&str]) {
        let unknown = self.entries().filter(|(key, _)| !known.contains(key));
        for (_, field) in unknown.filter(|(_, field)| !is_unstorable(field.value)) {
            self.report.add_with(|| {
                let detail = format!("unknown field: known are {}", known.join(", "));
                FieldError::invalid(field.path.to_string(), detail)
            });
        }
    }

    /// Reports a missing field that is required only under a condition.
    pub fn missing(&self, key: &str) {
        let field = Path::Key(&self.path, key).to_string();
        self.report.add(FieldError { field, code: Code::MissingField, detail: None });
    }

    /// Reports a violation of a rule that spans several fields.
    pub fn invalid(&self, key: &str, detail: impl Into<String>) {
        self.report.add(self.field_error(key, detail));
    }

    /// Reports an error that has the path of its field already.
    pub fn report(&self, error: FieldError) {
        self.report.add(error);
    }

    /// The error of an invalid field, without reporting it.
    pub fn field_error(&self, key: &str, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(Path::Key(&self.path, key).to_string(), detail)
    }
}
