use serde_json::json;

use super::Document;

/// A document with two operations.
pub(crate) fn document() -> Document {
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "t", "description": "Manages returns" },
        "tags": [{ "name": "unused" }, { "name": "returns", "description": "Returns" }],
        "paths": {
            "/v1/returns": {
                "get": { "operationId": "list_returns", "summary": "List returns", "tags": ["returns"],
                    "security": [{ "bearer": ["returns"] }, { "bearer": ["read"] }] },
            },
            "/v1/returns/{rma_identifier}/cancel": {
                "post": {
                    "operationId": "cancel_return", "summary": "Cancel a return", "tags": ["returns"],
                    "security": [{ "bearer": ["returns"] }],
                    "parameters": [
                        { "name": "rma_identifier", "in": "path", "required": true, "schema": { "type": "string" } },
                        { "name": "dry_run", "in": "query", "required": false, "schema": { "type": "boolean" } },
                        { "name": "X-Service-Id", "in": "header", "required": false, "schema": { "type": "string" } },
                        { "name": "Idempotency-Key", "in": "header", "required": false, "schema": { "type": "string" } },
                    ],
                    "requestBody": {
                        "required": true,
                        "content": { "application/json": {
                            "schema": { "$ref": "#/components/schemas/Cancellation" },
                            "example": { "reason": "It's kept" },
                        } },
                    },
                    "responses": { "200": { "description": "The return" } },
                },
            },
        },
        "components": { "schemas": {
            "Cancellation": { "type": "object", "properties": { "reason": { "type": "string" } } },
        } },
    });
    serde_json::from_str(&document.to_string()).unwrap()
}

#[test]
fn operations_are_grouped_by_tag() {
    let groups = document().by_tag();
    let names: Vec<_> = groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["returns"]);
    let operations: Vec<_> = groups[0]
        .operations
        .iter()
        .map(|it| (it.method, it.path.as_str(), it.id.as_str()))
        .collect();
    assert_eq!(
        operations,
        [
            ("GET", "/v1/returns", "list_returns"),
            ("POST", "/v1/returns/{rma_identifier}/cancel", "cancel_return"),
        ]
    );
}

#[test]
fn an_operation_is_found_by_its_identifier() {
    let document = document();
    let operation = document.operation("cancel_return").unwrap();
    assert_eq!((operation.method, operation.parameters.len()), ("POST", 4));
    assert_eq!(operation.content().unwrap().0, "application/json");
    assert_eq!(document.operation("list_returns").unwrap().scopes(), ["read", "returns"]);
    assert!(document.operation("delete_everything").is_none());
}
