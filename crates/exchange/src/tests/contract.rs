//! The contract files match the code.

use domain::exchange::{exchange_order_schema, variants_schema};
use domain::json::object;
use serde_json::json;
use testkit::check_contract;

use crate::App;
use crate::http::exchange_orders::read_note;

#[test]
fn the_api_document_is_up_to_date() {
    let document = platform::openapi::<App>().to_yaml().unwrap();
    check_contract("openapi/exchange.yaml", &document);
}

#[test]
fn the_schemas_are_up_to_date() {
    for (file, schema) in [
        ("messages/exchange-order.schema.json", exchange_order_schema()),
        ("messages/exchange-variants.schema.json", variants_schema()),
    ] {
        check_contract(file, &format!("{schema:#}\n"));
    }
}

#[test]
fn the_api_document_and_the_readers_agree_on_request_bodies() {
    let mut bodies = testkit::RequestBodies::of::<App>(json!({}));
    bodies.skip_common();
    let abandon = "POST /v1/exchange_orders/{original_order_id}/abandon";
    bodies.check(abandon, &[], |body| body.read(object(read_note)));
    bodies.finish();
}
