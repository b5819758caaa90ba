use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::exchange::{InvalidVariantsResponse, Variants, variants_schema};

fn read(answer: &Value) -> Result<Variants, InvalidVariantsResponse> {
    Variants::read(answer.to_string().as_bytes())
}

#[track_caller]
fn refused(answer: &[u8], want: &Expect) {
    let error = Variants::read(answer).unwrap_err();
    want.assert_eq(&error.to_string());
}

#[test]
fn both_shapes_are_read() {
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
fn what_is_sold_out_is_not_offered() {
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
fn one_that_cannot_be_read_does_not_hide_the_others() {
    let variants = read(&json!([
        {"title": "no sku"}, {"sku": "S", "title": "Small"}, 7, {"sku": "\u{0}", "title": "x"},
        {"sku": "M", "title": "Medium", "quantity_in_stock": "many"},
    ]))
    .unwrap();
    assert_eq!((variants.offered.len(), variants.unreadable), (1, 4));
}

#[test]
fn an_answer_about_something_else_is_refused() {
    refused(b"<html>", &expect!["the answer is not JSON"]);
    refused(b"[]]", &expect!["the answer is not JSON"]);
    let no_list = expect!["the answer is neither an array of variants nor an object with one"];
    refused(b"null", &no_list);
    refused(b"{}", &no_list);
    refused(br#"{"variants": {}}"#, &no_list);
    refused(
        br#"[{"sku": 7, "title": "x"}, 8]"#,
        &expect![
            "none of the variants can be read; the first says $.sku: invalid_type (expected a string, found an integer)"
        ],
    );
    let many = json!(vec![json!({"sku": "S", "title": "x"}); 1001]).to_string();
    refused(many.as_bytes(), &expect!["the answer has more than 1000 variants"]);
}

#[test]
fn the_schema_fits_what_is_read() {
    let schema = jsonschema::validator_for(&variants_schema()).unwrap();
    let list = json!([{"sku": "S", "title": "Small", "quantity_in_stock": 3}]);
    assert!(schema.is_valid(&list));
    assert!(schema.is_valid(&json!({"variants": list})));
    assert!(!schema.is_valid(&json!([{"sku": "S"}])));
    assert!(!schema.is_valid(&json!({"items": []})));
}
