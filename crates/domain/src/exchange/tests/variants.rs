use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::exchange::variant_warnings::FIELDS;
use crate::exchange::{InvalidVariantsResponse, Variants, variants_schema};

fn read(body: &Value) -> Result<Variants, InvalidVariantsResponse> {
    Variants::read(body.to_string().as_bytes())
}

#[track_caller]
fn check_error(body: &[u8], want: &Expect) {
    let error = Variants::read(body).unwrap_err();
    want.assert_eq(&error.to_string());
}

#[test]
fn both_forms_of_the_response_are_read() {
    let list = json!([
        {"sku": "S", "title": "Small", "attributes": [{"name": "size", "value": 38}],
         "unit_price_amount_cents": 2000, "quantity_in_stock": 3,
         "image_url": "https://acme.example/s.jpg", "product_url": "javascript:alert(1)"},
        {"sku": "M", "title": "Medium"},
    ]);
    let variants = read(&list).unwrap();
    assert_eq!(variants, read(&json!({"variants": list, "page": 1})).unwrap());
    let small = &variants.offered[0];
    assert_eq!((small.attributes[0].value.as_str(), small.quantity_in_stock), ("38", Some(3)));
    assert_eq!(small.image_url.as_deref(), Some("https://acme.example/s.jpg"));
    assert_eq!(small.product_url, None);
    assert_eq!(variants.offered[1].unit_price_amount_cents, None);
}

#[test]
fn sold_out_variants_are_not_offered() {
    let list = json!([
        {"sku": "S", "title": "Small", "quantity_in_stock": 0},
        {"sku": "M", "title": "Medium", "quantity_in_stock": -2},
        {"sku": "L", "title": "Large", "quantity_in_stock": 1},
        {"sku": "L", "title": "Large again", "quantity_in_stock": 9},
        {"sku": "XL", "title": "Huge", "quantity_in_stock": null},
    ]);
    let variants = read(&list).unwrap();
    let skus: Vec<_> = variants.offered.iter().map(|variant| variant.sku.as_str()).collect();
    assert_eq!((skus, variants.sold_out), (vec!["L", "XL"], 2));
    assert_eq!(read(&json!([])).unwrap(), Variants::default());
}

#[test]
fn an_invalid_variant_does_not_hide_the_others() {
    let variants = read(&json!([
        {"title": "no sku"}, {"sku": "S", "title": "Small"}, 7, {"sku": "\u{0}", "title": "x"},
        {"sku": "M", "title": "Medium", "quantity_in_stock": "many"},
    ]))
    .unwrap();
    assert_eq!((variants.offered.len(), variants.invalid), (1, 4));
}

#[test]
fn unused_parts_of_a_response_are_warnings() {
    let warnings = |body: &Value| Variants::warnings(body.to_string().as_bytes()).unwrap();
    assert!(warnings(&json!([{"sku": "S", "title": "Small", "quantity_in_stock": 0}])).is_empty());
    let empty = ["the list is empty, so shoppers are offered no variants"];
    assert_eq!(warnings(&json!([])), empty);
    assert_eq!(warnings(&json!({"variants": []})), empty);
    assert_eq!(
        warnings(&json!([
            {"sku": "S-1"}, {"sku": "S-2", "title": "b", "price": 4995, "stock": 0, "colour": "red"},
            {"sku": "S-2", "title": "b", "price": 1}, 7,
            {"sku": "S-3", "title": "c", "image_url": "/c.jpg", "product_url": null},
        ])),
        [
            "variant 1 (S-1) is left out: $.title: missing_field",
            "variant 2 (S-2): `colour` is not a field and is ignored",
            "variant 2 (S-2): `price` is not a field; did you mean `unit_price_amount_cents`?",
            "variant 2 (S-2): `stock` is not a field; did you mean `quantity_in_stock`?",
            "variant 3 (S-2) is left out: an earlier one has its SKU",
            "variant 4 is left out: $: invalid_type (expected an object, found an integer)",
            "variant 5 (S-3): `image_url` is not a web URL and is ignored",
        ]
    );
    let many = warnings(&json!(vec![json!({"sku": "S"}); 30]));
    assert_eq!((many.len(), many[20].as_str()), (21, "there are 10 more warnings"));
}

#[test]
fn every_field_of_the_schema_is_known() {
    let schema = variants_schema();
    let properties = schema["$defs"]["OfferedVariant"]["properties"].as_object().unwrap();
    let mut known = FIELDS.to_vec();
    known.sort_unstable();
    assert_eq!(properties.keys().collect::<Vec<_>>(), known);
}

#[test]
fn a_response_without_variants_is_rejected() {
    check_error(b"<html>", &expect!["the response is not JSON"]);
    check_error(b"[]]", &expect!["the response is not JSON"]);
    let no_list = expect!["the response is neither an array of variants nor an object with one"];
    check_error(b"null", &no_list);
    check_error(b"{}", &no_list);
    check_error(br#"{"variants": {}}"#, &no_list);
    check_error(
        br#"[{"sku": 7, "title": "x"}, 8]"#,
        &expect![
            "none of the variants is valid; the first error is $.sku: invalid_type (expected a string, found an integer)"
        ],
    );
    let many = json!(vec![json!({"sku": "S", "title": "x"}); 1001]).to_string();
    check_error(many.as_bytes(), &expect!["the response has more than 1000 variants"]);
}

#[test]
fn the_schema_matches_the_reader() {
    let schema = jsonschema::validator_for(&variants_schema()).unwrap();
    let list = json!([{"sku": "S", "title": "Small", "quantity_in_stock": 3}]);
    assert!(schema.is_valid(&list));
    assert!(schema.is_valid(&json!({"variants": list})));
    assert!(!schema.is_valid(&json!([{"sku": "S"}])));
    assert!(!schema.is_valid(&json!({"items": []})));
}
