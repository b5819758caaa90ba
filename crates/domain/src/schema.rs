//! Self-contained JSON Schemas of types, for the published contract files.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";

/// The schema of `T` (draft 2020-12). Referenced schemas are in `$defs`.
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
    use_local_references(&mut schema);
    schema
}

fn use_local_references(schema: &mut Value) {
    match schema {
        Value::String(reference) => {
            if let Some(name) = reference.strip_prefix(COMPONENTS) {
                *reference = format!("{DEFINITIONS}{name}");
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(use_local_references),
        Value::Object(members) => members.values_mut().for_each(use_local_references),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    struct Parcel {
        carrier: Carrier,
        #[schema(minimum = 1)]
        grams: i64,
    }

    #[derive(ToSchema)]
    #[expect(dead_code, reason = "only the schema is used")]
    enum Carrier {
        Road,
        Air,
    }

    #[test]
    fn a_schema_is_self_contained() {
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
