//! Bodies that differ from an example in one place.

use std::collections::BTreeSet;

use domain::json::ValidationError;
use serde_json::{Map, Value, json};

/// A number of characters or elements that no reader accepts.
const TOO_MANY: u64 = 100_001;
const NO_FIELD: &str = "no_such_field";
/// One value of each type.
const TYPES: [&str; 7] = ["null", "true", "12345", "0.5", "\"no such value\"", "[]", "{}"];

pub(super) struct Changes<'a> {
    /// The schema of the body, with the components that it refers to.
    pub(super) schema: &'a Value,
    /// Schemas that responses and messages have too. They do not forbid further properties, because a later
    /// version may add some.
    pub(super) open: &'a BTreeSet<String>,
    pub(super) samples: &'a Map<String, Value>,
    pub(super) read: &'a dyn Fn(&Value) -> Result<(), ValidationError>,
}

/// A place in a body: the JSON pointer and the body.
#[derive(Clone)]
struct Place {
    pointer: String,
    body: Value,
}

impl Place {
    fn value(&self) -> &Value {
        self.body.pointer(&self.pointer).unwrap()
    }

    /// The body with another value at this place.
    fn with(&self, value: Value) -> Value {
        let mut body = self.body.clone();
        *body.pointer_mut(&self.pointer).unwrap() = value;
        body
    }

    fn member(&self, name: &str) -> Self {
        Self { pointer: format!("{}/{name}", self.pointer), body: self.body.clone() }
    }

    fn with_member(&self, name: &str, value: Value) -> Self {
        let mut object = self.value().clone();
        object[name] = value;
        Self { pointer: self.pointer.clone(), body: self.with(object) }
    }
}

/// Takes a description of a change, and the changed body.
type Visit<'a> = dyn FnMut(String, Value) + 'a;

impl Changes<'_> {
    /// Visits the example and all its changes.
    pub(super) fn visit(&self, example: &Value, visit: &mut Visit<'_>) {
        visit("the example".to_owned(), example.clone());
        let place = Place { pointer: String::new(), body: example.clone() };
        self.change(self.schema, &place, false, visit);
    }

    /// Changes the value at a place. `is_open` says whether its schema allows further properties.
    fn change(&self, schema: &Value, place: &Place, is_open: bool, visit: &mut Visit<'_>) {
        for word in ["allOf", "oneOf", "anyOf"] {
            for part in schema[word].as_array().into_iter().flatten() {
                // A part of `allOf` cannot forbid the properties of the other parts.
                self.change(part, place, is_open || word == "allOf", visit);
            }
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let is_open = is_open || self.open.contains(reference);
            return self.change(self.resolve(reference), place, is_open, visit);
        }
        let mut replace = |value: Value| {
            let shown = value.to_string().chars().take(40).collect::<String>();
            visit(format!("{} = {shown}", place.pointer), place.with(value));
        };
        TYPES.iter().for_each(|text| replace(serde_json::from_str(text).unwrap()));
        match place.value() {
            Value::String(_) => {
                lengths(schema, "Length").for_each(|length| replace(json!("a".repeat(length))))
            }
            Value::Number(_) => numbers(schema).into_iter().for_each(replace),
            Value::Array(elements) => self.change_elements(schema, place, elements, visit),
            Value::Object(_) => self.change_members(schema, place, is_open, visit),
            _ => {}
        }
    }

    fn change_elements(
        &self,
        schema: &Value,
        place: &Place,
        elements: &[Value],
        visit: &mut Visit<'_>,
    ) {
        let Some(first) = elements.first() else { return };
        for length in lengths(schema, "Items") {
            let body = place.with(json!(vec![first; length]));
            visit(format!("{} has {length} elements", place.pointer), body);
        }
        if schema["items"].is_object() {
            self.change(&schema["items"], &place.member("0"), false, visit);
        }
    }

    fn change_members(&self, schema: &Value, place: &Place, is_open: bool, visit: &mut Visit<'_>) {
        if !is_open && schema["properties"].is_object() {
            let unknown = place.with_member(NO_FIELD, json!(1));
            visit(format!("{}/{NO_FIELD} is added", place.pointer), unknown.body);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let mut place = place.clone();
            let mut object = place.value().clone();
            if object.as_object_mut().unwrap().remove(name).is_some() {
                visit(format!("{}/{name} is removed", place.pointer), place.with(object));
            } else {
                let sample = self.sample(name, property);
                place = place.with_member(name, sample);
                let added = format!("{}/{name} is added", place.pointer);
                visit(added.clone(), place.body.clone());
                // Changes of a body that the reader rejects anyway would show nothing.
                if let Err(error) = (self.read)(&place.body) {
                    eprintln!("{added} and not changed further: {error:?}");
                    continue;
                }
            }
            self.change(property, &place.member(name), false, visit);
        }
    }

    /// A valid value of a property.
    fn sample(&self, name: &str, schema: &Value) -> Value {
        if let Some(sample) = self.samples.get(name) {
            return sample.clone();
        }
        if let Some(reference) = schema["$ref"].as_str() {
            return self.sample(name, self.resolve(reference));
        }
        let word = |word: &str| schema[word].get(0).cloned();
        let given =
            schema.get("example").or(schema.get("default")).filter(|it| !it.is_null()).cloned();
        if let Some(value) = given.or_else(|| word("enum")) {
            return value;
        }
        let is_null = |schema: &&Value| schema["type"] == "null";
        for part in ["oneOf", "anyOf"].iter().filter_map(|word| schema[*word].as_array()).flatten()
        {
            if !is_null(&part) {
                return self.sample(name, part);
            }
        }
        if let Some(parts) = schema["allOf"].as_array() {
            let parts = parts.iter().map(|part| self.sample(name, part));
            let members = parts.filter_map(|part| part.as_object().cloned()).flatten();
            return Value::Object(members.collect());
        }
        let kind = word("type").unwrap_or_else(|| schema["type"].clone());
        match kind.as_str().unwrap_or_default() {
            "boolean" => json!(true),
            "integer" | "number" => schema.get("minimum").cloned().unwrap_or(json!(1)),
            "array" => json!([self.sample(name, &schema["items"])]),
            "object" => self.sample_object(schema),
            _ if schema["format"] == "date-time" => json!("2026-03-01T09:30:00Z"),
            _ => json!("a"),
        }
    }

    /// An object with the required properties.
    fn sample_object(&self, schema: &Value) -> Value {
        let required = schema["required"].as_array().into_iter().flatten();
        let members = required.map(|name| {
            let name = name.as_str().unwrap();
            (name.to_owned(), self.sample(name, &schema["properties"][name]))
        });
        Value::Object(members.collect())
    }

    fn resolve(&self, reference: &str) -> &Value {
        self.schema.pointer(reference.trim_start_matches('#')).unwrap()
    }
}

/// Lengths at the limits of a schema and beyond them.
fn lengths(schema: &Value, noun: &str) -> impl Iterator<Item = usize> {
    let limit = |word: &str| schema[format!("{word}{noun}")].as_u64();
    let min = limit("min").unwrap_or(0);
    let above = limit("max").map_or([None, Some(TOO_MANY)], |max| [Some(max), Some(max + 1)]);
    let lengths = [min.checked_sub(1), Some(min)].into_iter().chain(above).flatten();
    lengths.map(|length| usize::try_from(length).unwrap())
}

/// Numbers at the limits of a schema and beyond them.
fn numbers(schema: &Value) -> Vec<Value> {
    let limit =
        |word: &str| schema[word].as_f64().map(|limit| limit.to_string().parse::<i64>().unwrap());
    let min = limit("minimum").map_or(vec![i64::MIN], |min| vec![min - 1, min]);
    let max = limit("maximum").map_or(vec![i64::MAX], |max| vec![max, max + 1]);
    min.into_iter().chain(max).map(Value::from).collect()
}
