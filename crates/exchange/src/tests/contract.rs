//! The contract files match the code.

use domain::exchange::{exchange_order_schema, variants_schema};
use testkit::check_contract;

use crate::App;

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
