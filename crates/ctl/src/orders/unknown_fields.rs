//! Fields of an order that the order intake does not read, found with the published schema. Most are
//! misspelled.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use domain::json::{FieldError, JsonValue, unknown_field};
use domain::order::message_schema;
use serde_json::Value;

static SCHEMA: LazyLock<Value> = LazyLock::new(message_schema);
static ORDER: LazyLock<KnownFields> = LazyLock::new(|| {
    KnownFields::of(&SCHEMA.pointer("/$defs/Order").into_iter().collect::<Vec<_>>())
});

/// Alternatives of one schema.
const ALTERNATIVES: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// The fields of a value. Empty for a value without properties in its schema, which is not read.
#[derive(Default)]
struct KnownFields {
    fields: HashMap<&'static str, Self>,
    /// The fields of the elements of an array.
    elements: Option<Box<Self>>,
}

impl KnownFields {
    /// The fields of a value that has one of these schemas.
    fn of(schemas: &[&'static Value]) -> Self {
        let schemas = resolve(schemas);
        let items: Vec<_> = schemas.iter().filter_map(|schema| schema.get("items")).collect();
        let properties = properties(&schemas).into_iter();
        Self {
            fields: properties.map(|(key, schemas)| (key, Self::of(&schemas))).collect(),
            elements: (!items.is_empty()).then(|| Box::new(Self::of(&items))),
        }
    }
}

/// A step from a value to one inside it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Member(&'a str),
    Element(usize),
}

/// The unknown fields of an order, with paths relative to the order.
pub(crate) fn unknown_fields(order: JsonValue<'_>) -> Vec<FieldError> {
    let mut found = Vec::new();
    find(order, &ORDER, &mut Vec::new(), &mut found);
    found
}

fn find<'a>(
    value: JsonValue<'a>,
    known: &KnownFields,
    path: &mut Vec<Step<'a>>,
    found: &mut Vec<FieldError>,
) {
    match (value, &known.elements) {
        (JsonValue::Array(elements), Some(known)) => {
            for (index, element) in elements.iter().enumerate() {
                path.push(Step::Element(index));
                find(element, known, path, found);
                path.pop();
            }
        }
        (JsonValue::Object(members), _) if !known.fields.is_empty() => {
            for (key, member) in members.iter() {
                path.push(Step::Member(key));
                match known.fields.get(key) {
                    Some(known) => find(member, known, path, found),
                    None => {
                        let detail = unknown_field(key, known.fields.keys().copied());
                        found.push(FieldError::invalid(path_text(path), detail));
                    }
                }
                path.pop();
            }
        }
        _ => {}
    }
}

/// The schemas with their references and alternatives.
fn resolve<'a>(schemas: &[&'a Value]) -> Vec<&'a Value> {
    let mut resolved = Vec::new();
    for schema in schemas {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| reference.strip_prefix('#'));
        let definition: Option<&'a Value> = target.and_then(|target| SCHEMA.pointer(target));
        resolved.extend(resolve(&definition.into_iter().collect::<Vec<_>>()));
        let members = ALTERNATIVES.iter().filter_map(|keyword| schema.get(keyword)?.as_array());
        resolved.extend(resolve(&members.flatten().collect::<Vec<_>>()));
        resolved.push(schema);
    }
    resolved
}

fn properties<'a>(schemas: &[&'a Value]) -> BTreeMap<&'a str, Vec<&'a Value>> {
    let mut known: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let objects = schemas.iter().filter_map(|schema| schema.get("properties")?.as_object());
    for (key, schema) in objects.flatten() {
        known.entry(key.as_str()).or_default().push(schema);
    }
    known
}

fn path_text(path: &[Step<'_>]) -> String {
    let is_plain = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    path.iter().fold("$".to_owned(), |path, step| match step {
        Step::Member(key) if is_plain(key) => format!("{path}.{key}"),
        Step::Member(key) => format!("{path}['{key}']"),
        Step::Element(index) => format!("{path}[{index}]"),
    })
}

#[cfg(test)]
mod tests {
    use domain::json::Document;
    use domain::order::sample::{Orders, document};
    use serde_json::json;

    use super::*;

    fn found(order: Value) -> Vec<String> {
        let order = Document::from(order);
        let errors = unknown_fields(order.value()).into_iter();
        errors.map(|it| format!("{}: {}", it.field, it.detail.unwrap_or_default())).collect()
    }

    #[test]
    fn the_fields_of_a_sample_are_known() {
        for order in Orders::new(1, "2026-03-01T00:00:00Z".parse().unwrap()).take(50) {
            assert_eq!(found(document(&order)), Vec::<String>::new());
        }
    }

    #[test]
    fn a_misspelled_field_has_a_suggestion() {
        let order = json!({
            "identifier": "A", "Currency": "USD", "x y": 1,
            "items": [{ "shiped_date": "2026-01-01", "sku": "S" }],
            "customer": { "e_mail": "ada@shop.example", "identifier": "4" },
            "shipping_address": { "zipcode": "27601" },
            "transactions": [{ "anything": { "goes": 1 } }],
            "refunds": [{ "refund_line_items": [{ "qty": 1 }] }],
        });
        assert_eq!(
            found(order),
            [
                "$.Currency: `Currency` is not a field; did you mean `currency`?",
                "$.customer.e_mail: `e_mail` is not a field; did you mean `email`?",
                "$.items[0].shiped_date: `shiped_date` is not a field; did you mean `shipped_date`?",
                "$.refunds[0].refund_line_items[0].qty: `qty` is not a field and is ignored",
                "$.shipping_address.zipcode: `zipcode` is not a field; did you mean `zip_code`?",
                "$['x y']: `x y` is not a field and is ignored",
            ]
        );
    }
}
