//! Schemas of bodies as tables of fields.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::prose::{Paragraph, phrases};

/// Deeper fields are left out, and so are fields of a schema that contains itself.
const MAX_DEPTH: usize = 6;
const MAX_FIELDS: usize = 250;
const REFERENCE: &str = "#/components/schemas/";

/// The named schemas of a document.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Schemas(HashMap<String, Box<RawValue>>);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct BodyField {
    /// The path in the body: `units[].unit`.
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    pub(super) about: Paragraph,
}

impl Schemas {
    /// The fields of a body, outer ones first.
    pub(super) fn fields(&self, schema: &Value) -> Vec<BodyField> {
        let mut table = Table { schemas: self, fields: Vec::new(), open: Vec::new() };
        table.add(schema, "", true);
        table.fields
    }

    /// The values that a parameter can have, if there are few.
    pub(super) fn options(&self, schema: &Value) -> Vec<String> {
        let schema = self.resolve(schema);
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values.iter().filter(|value| !value.is_null()).map(plain).collect();
        }
        if has_type(&schema, "boolean") {
            return vec!["true".to_owned(), "false".to_owned()];
        }
        let alternatives = alternatives(&schema);
        alternatives.first().map(|only| self.options(only)).unwrap_or_default()
    }

    /// The type of a value in words.
    pub(super) fn kind(&self, schema: &Value) -> String {
        self.kind_within(schema, 0)
    }

    fn kind_within(&self, schema: &Value, depth: usize) -> String {
        if depth > MAX_DEPTH {
            return "object".to_owned();
        }
        let schema = self.resolve(schema);
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return values.iter().map(plain).collect::<Vec<_>>().join(" or ");
        }
        let mut kinds = types(&schema);
        for alternative in alternatives(&schema) {
            kinds.push(self.kind_within(alternative, depth + 1));
        }
        if let Some(array) = kinds.iter_mut().find(|kind| *kind == "array") {
            let items = schema.get("items").map(|items| self.kind_within(items, depth + 1));
            *array = format!("list of {}", items.unwrap_or_default());
        }
        if has_null(&schema) {
            kinds.push("null".to_owned());
        }
        kinds.dedup();
        let kind = match (kinds.is_empty(), schema.get("allOf").is_some()) {
            (true, true) => "object".to_owned(),
            (true, false) => "any value".to_owned(),
            (false, _) => kinds.join(" or "),
        };
        [Some(kind), limits(&schema)].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The schema that a reference names. An unknown reference is an empty schema.
    fn resolve(&self, schema: &Value) -> Value {
        match reference(schema) {
            Some(name) => self.named(name).unwrap_or_default(),
            None => schema.clone(),
        }
    }

    fn named(&self, name: &str) -> Option<Value> {
        serde_json::from_str(self.0.get(name)?.get()).ok()
    }
}

struct Table<'a> {
    schemas: &'a Schemas,
    fields: Vec<BodyField>,
    /// The references that lead to the current schema.
    open: Vec<String>,
}

impl Table<'_> {
    /// Adds the fields of a schema. Fields of one alternative among several are not required.
    fn add(&mut self, schema: &Value, prefix: &str, is_certain: bool) {
        if let Some(name) = reference(schema) {
            if self.open.len() < MAX_DEPTH
                && !self.open.iter().any(|open| open == name)
                && let Some(named) = self.schemas.named(name)
            {
                self.open.push(name.to_owned());
                self.add(&named, prefix, is_certain);
                self.open.pop();
            }
            return;
        }
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.add(part, prefix, is_certain);
        }
        self.add_properties(schema, prefix, is_certain);
        let alternatives = alternatives(schema);
        for alternative in &alternatives {
            self.add(alternative, prefix, is_certain && alternatives.len() == 1);
        }
        if let Some(items) = schema.get("items") {
            self.add(items, &format!("{prefix}[]"), is_certain);
        }
    }

    fn add_properties(&mut self, schema: &Value, prefix: &str, is_certain: bool) {
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, property) in properties.into_iter().flatten() {
            let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            let is_known = self.fields.iter().any(|field| field.name == name);
            if is_known || self.fields.len() >= MAX_FIELDS {
                continue;
            }
            self.fields.push(BodyField {
                kind: self.schemas.kind(property),
                is_required: is_certain && required.contains(&key.as_str()),
                about: phrases(&self.about(property)),
                name: name.clone(),
            });
            self.add(property, &name, true);
        }
    }

    /// The description of a value, or of its type.
    fn about(&self, schema: &Value) -> String {
        let own = |schema: &Value| Some(schema.get("description")?.as_str()?.to_owned());
        let found = own(schema)
            .or_else(|| alternatives(schema).into_iter().find_map(own))
            .or_else(|| own(&self.schemas.resolve(schema)));
        found.unwrap_or_default().replace('\n', " ")
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix(REFERENCE)
}

/// The alternatives of a schema other than null.
fn alternatives(schema: &Value) -> Vec<&Value> {
    ["oneOf", "anyOf"]
        .into_iter()
        .filter_map(|name| schema.get(name)?.as_array())
        .flatten()
        .filter(|alternative| !has_type(alternative, "null"))
        .collect()
}

fn types(schema: &Value) -> Vec<String> {
    let of = |value: &Value| value.as_str().filter(|kind| *kind != "null").map(str::to_owned);
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(of).collect(),
        Some(kind) => of(kind).into_iter().collect(),
        None => Vec::new(),
    }
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == wanted),
        Some(kind) => kind == wanted,
        None => false,
    }
}

fn has_null(schema: &Value) -> bool {
    let one_of = schema.get("oneOf").and_then(Value::as_array);
    let listed = one_of.into_iter().flatten().any(|alternative| has_type(alternative, "null"));
    listed || has_type(schema, "null")
}

/// Format, length or range of a value.
fn limits(schema: &Value) -> Option<String> {
    let number = |name: &str| schema.get(name).filter(|value| value.is_number()).map(plain);
    let range = |least: &str, most: &str, unit: &str| match (number(least), number(most)) {
        (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
        (Some(least), None) => Some(format!("at least {least}{unit}")),
        (None, Some(most)) => Some(format!("at most {most}{unit}")),
        (None, None) => None,
    };
    let format = schema.get("format").and_then(Value::as_str);
    let format = format.filter(|format| !format.starts_with("int")).map(str::to_owned);
    format
        .or_else(|| range("minLength", "maxLength", " characters"))
        .or_else(|| range("minimum", "maximum", ""))
        .or_else(|| range("minItems", "maxItems", " entries"))
}

/// A value without quotation marks.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests;
