//! The JSON Schema of a type, complete in itself: what the contract files publish.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// The schema of `T` (draft 2020-12), with everything it refers to under `$defs`.
pub fn json_schema<T: ToSchema>(title: &str) -> Value {
    let mut parts = Vec::new();
    T::schemas(&mut parts);
    let definitions: Map<_, _> =
        parts.into_iter().map(|(name, part)| (name, json!(part))).collect();
    let mut schema = json!(T::schema());
    if let Value::Object(schema) = &mut schema {
        schema.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        schema.insert("title".into(), json!(title));
        schema.insert("$defs".into(), Value::Object(definitions));
    }
    refer_within(&mut schema);
    schema
}

fn refer_within(schema: &mut Value) {
    match schema {
        Value::String(reference) => {
            if let Some(name) = reference.strip_prefix(COMPONENTS) {
                *reference = format!("{DEFINITIONS}{name}");
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(refer_within),
        Value::Object(members) => members.values_mut().for_each(refer_within),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Parcel {
        carrier: Carrier,
        #[schema(minimum = 1)]
        grams: i64,
    }

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Carrier {
        Road,
        Air,
    }

    #[test]
    fn a_schema_refers_to_nothing_outside_itself() {
        let schema = serde_json::to_string_pretty(&json_schema::<Parcel>("Parcel")).unwrap();
        expect![[r##"
            {
              "$defs": {
                "Carrier": {
                  "enum": [
                    "Road",
                    "Air"
                  ],
                  "type": "string"
                }
              },
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "properties": {
                "carrier": {
                  "$ref": "#/$defs/Carrier"
                },
                "grams": {
                  "format": "int64",
                  "minimum": 1,
                  "type": "integer"
                }
              },
              "required": [
                "carrier",
                "grams"
              ],
              "title": "Parcel",
              "type": "object"
            }"##]]
        .assert_eq(&schema);
    }
}
