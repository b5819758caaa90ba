//! Compares the request bodies in the API document of a service with the readers of the service.
//!
//! Each example is changed in one place at a time: a property is removed or added, or a value is replaced by
//! another type, by an unknown word or by one beyond a limit. Schema and reader must then agree. A rule that
//! a schema cannot express, such as one that spans fields, is for the reader alone. Readers take null for an
//! absent optional field, and schemas need not say so.

mod changes;

use std::collections::BTreeSet;

use domain::json::{Code, Document, FieldError, ValidationError};
use domain::schema::json_schema;
use jsonschema::Validator;
use platform::Service;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use self::changes::Changes;

const JSON: &str = "application/json";
/// Starts of details that state a rule which a schema can express too.
const OF_SCHEMAS: [&str; 4] =
    ["must have ", "must be between ", "must be one of ", "unknown field"];

/// The request bodies of a service that are not checked yet, and the differences found so far.
pub struct RequestBodies {
    document: Value,
    /// Values of properties without an example, by the name of the property.
    samples: Map<String, Value>,
    /// References to the schemas of responses and messages.
    open: BTreeSet<String>,
    unchecked: BTreeSet<String>,
    differences: Vec<String>,
}

impl RequestBodies {
    /// `samples` has a value for each property that the examples lack and whose schema has no example.
    pub fn of<S: Service>(samples: Value) -> Self {
        let document = serde_json::to_value(platform::openapi::<S>()).unwrap();
        let Value::Object(samples) = samples else { panic!("samples are an object") };
        let mut open = BTreeSet::new();
        let mut unchecked = BTreeSet::new();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for (method, operation) in operations.as_object().unwrap() {
                add_references(&document, &operation["responses"], &mut open);
                let content = &operation["requestBody"]["content"];
                if content.as_object().is_some_and(|content| content.keys().eq([JSON])) {
                    unchecked.insert(format!("{} {path}", method.to_uppercase()));
                }
            }
        }
        add_references(&document, &document["webhooks"], &mut open);
        Self { document, samples, open, unchecked, differences: Vec::new() }
    }

    /// Compares the body of an operation, such as `POST /v1/returns`, with its reader. `conditional` names
    /// rules that the schema does not have, because they depend on other fields or on the merchant: each is
    /// the end of the JSONPath of a field, or of a change, such as `/id = ""`. A name that ends with ` =`, such as
    /// `/password =`, is a field whose value is checked after the body is read.
    pub fn check<T>(
        &mut self,
        operation: &str,
        conditional: &[&str],
        read: impl Fn(&Document) -> Result<T, ValidationError>,
    ) {
        assert!(self.unchecked.remove(operation), "{operation} has no body, or is checked twice");
        let example = self.content(operation)["example"].clone();
        self.check_example(operation, &example, conditional, read);
    }

    /// Like [`RequestBodies::check`], for another example.
    pub fn check_example<T>(
        &mut self,
        operation: &str,
        example: &Value,
        conditional: &[&str],
        read: impl Fn(&Document) -> Result<T, ValidationError>,
    ) {
        let mut schema = self.content(operation)["schema"].clone();
        schema["components"] = self.document["components"].clone();
        let read = |body: &Value| read(&Document::from(body)).map(drop);
        let changes =
            Changes { schema: &schema, open: &self.open, samples: &self.samples, read: &read };
        let found = differences(&changes, example, conditional);
        self.differences.extend(found.into_iter().map(|it| format!("{operation}: {it}")));
    }

    fn content(&self, operation: &str) -> &Value {
        let (method, path) = operation.split_once(' ').unwrap();
        &self.document["paths"][path][method.to_lowercase()]["requestBody"]["content"][JSON]
    }

    /// Skips the bodies of routes that several services have. Their own crates check them.
    pub fn skip_common(&mut self) {
        for operation in ["POST /v1/events/republish", "POST /v1/replays"] {
            self.unchecked.remove(operation);
        }
    }

    /// Skips a body whose reader reports other errors than those of fields.
    pub fn skip(&mut self, operation: &str) {
        assert!(self.unchecked.remove(operation), "{operation} has no body");
    }

    /// Fails if a body was not checked, or if schema and reader differ.
    #[track_caller]
    pub fn finish(self) {
        assert!(self.unchecked.is_empty(), "no reader was compared with {:?}", self.unchecked);
        assert!(self.differences.is_empty(), "{}", self.differences.join("\n"));
    }
}

/// Compares the schema of a type that only requests have with its reader; see [`RequestBodies::check`].
#[track_caller]
pub fn check_request_body<T: ToSchema, R>(
    example: &Value,
    conditional: &[&str],
    read: impl Fn(&Document) -> Result<R, ValidationError>,
) {
    let read = |body: &Value| read(&Document::from(body)).map(drop);
    let open = BTreeSet::new();
    let samples = Map::new();
    let schema = json_schema::<T>("");
    let changes = Changes { schema: &schema, open: &open, samples: &samples, read: &read };
    let found = Vec::from_iter(differences(&changes, example, conditional));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn differences(changes: &Changes<'_>, example: &Value, conditional: &[&str]) -> BTreeSet<String> {
    let validator = validator(changes.schema);
    let mut found = BTreeSet::new();
    let is_checked_later =
        |change: &str| conditional.iter().any(|it| it.ends_with(" =") && change.starts_with(it));
    changes.visit(example, &mut |change, body| {
        let reason = match (validator.validate(&body), (changes.read)(&body)) {
            (Err(error), Ok(())) if !change.ends_with(" = null") && !is_checked_later(&change) => {
                format!("only the schema rejects it: {error:.200}")
            }
            (Ok(()), Err(error)) if !conditional.iter().any(|end| change.ends_with(end)) => {
                let errors = error.errors.iter().filter(|it| is_of_schemas(it, conditional));
                let errors = errors.map(ToString::to_string).collect::<Vec<_>>().join(", ");
                if errors.is_empty() {
                    return;
                } else {
                    format!("only the reader rejects it: {errors}")
                }
            }
            _ => return,
        };
        found.insert(format!("{change}: {reason}"));
    });
    found
}

/// Adds the references in a part of the document, and those in the schemas that they name.
fn add_references(document: &Value, part: &Value, found: &mut BTreeSet<String>) {
    match part {
        Value::String(reference) if reference.starts_with("#/") && !found.contains(reference) => {
            found.insert(reference.clone());
            let schema = document.pointer(reference.trim_start_matches('#'));
            add_references(document, schema.unwrap(), found);
        }
        Value::Array(elements) => {
            elements.iter().for_each(|it| add_references(document, it, found))
        }
        Value::Object(members) => {
            members.values().for_each(|it| add_references(document, it, found))
        }
        _ => {}
    }
}

fn validator(schema: &Value) -> Validator {
    jsonschema::options().should_validate_formats(true).build(schema).unwrap()
}

/// Whether a schema could express the rule that a field breaks, and the rule is not conditional.
fn is_of_schemas(error: &FieldError, conditional: &[&str]) -> bool {
    let path = without_indexes(&error.field);
    let detail = error.detail.as_deref().unwrap_or_default();
    let is_conditional = conditional.iter().any(|end| path.ends_with(end));
    let is_known = OF_SCHEMAS.iter().any(|start| detail.starts_with(start));
    !is_conditional && (error.code != Code::Invalid || is_known)
}

/// A JSONPath with `[]` for each index.
fn without_indexes(path: &str) -> String {
    let parts = path.split('[').enumerate().map(|(index, part)| match part.split_once(']') {
        Some((_, rest)) if index > 0 => format!("[]{rest}"),
        _ => part.to_owned(),
    });
    parts.collect()
}
