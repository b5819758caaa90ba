use expect_test::{Expect, expect};
use serde_json::{Value, json};

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
