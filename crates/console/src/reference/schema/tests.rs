use serde_json::json;

use super::*;

fn schemas() -> Schemas {
    let schemas = json!({
        "Unit": { "type": "object", "required": ["unit"], "properties": {
            "unit": { "type": "integer", "format": "int32", "minimum": 1, "maximum": 1000 },
            "parent": { "$ref": "#/components/schemas/Unit" },
        } },
        "State": { "type": "string", "enum": ["open", "closed"], "description": "The state\nof it" },
        "Page": { "allOf": [
            { "type": "object", "required": ["units"], "properties": {
                "units": { "type": "array", "items": { "$ref": "#/components/schemas/Unit" } },
            } },
            { "type": "object", "properties": {
                "state": { "oneOf": [{ "$ref": "#/components/schemas/State" }, { "type": "null" }] },
                "note": { "type": ["string", "null"], "maxLength": 10 },
            } },
        ] },
    });
    serde_json::from_str(&schemas.to_string()).unwrap()
}

#[test]
fn a_body_is_a_table_of_fields() {
    let fields = schemas().fields(&json!({ "$ref": "#/components/schemas/Page" }));
    let shown: Vec<_> =
        fields.iter().map(|it| (it.name.as_str(), it.kind.as_str(), it.is_required)).collect();
    assert_eq!(
        shown,
        [
            ("units", "list of object", true),
            ("units[].parent", "object", false),
            ("units[].unit", "integer, 1 to 1000", true),
            ("note", "string or null, at most 10 characters", false),
            ("state", "open or closed or null", false),
        ]
    );
}

#[test]
fn few_values_can_be_chosen() {
    let schemas = schemas();
    let nullable =
        json!({ "oneOf": [{ "$ref": "#/components/schemas/State" }, { "type": "null" }] });
    assert_eq!(schemas.options(&nullable), ["open", "closed"]);
    assert_eq!(schemas.options(&json!({ "type": "boolean" })), ["true", "false"]);
    assert!(schemas.options(&json!({ "type": "string" })).is_empty());
}

#[test]
fn a_type_is_described_by_its_schema() {
    let schemas = schemas();
    let table = Table { schemas: &schemas, fields: Vec::new(), open: Vec::new() };
    assert_eq!(table.about(&json!({ "$ref": "#/components/schemas/State" })), "The state of it");
}
