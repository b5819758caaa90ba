//! The contract files match the code.

use domain::order::{message_schema, stored_schema};
use testkit::check_contract;

use super::*;

fn pretty(schema: &Value) -> String {
    format!("{schema:#}\n")
}

#[test]
fn the_api_document_is_up_to_date() {
    let document = platform::openapi::<App>().to_yaml().unwrap();
    check_contract("openapi/order-intake.yaml", &document);
}

#[test]
fn the_schemas_are_up_to_date() {
    let message = pretty(&message_schema());
    check_contract("messages/returns-portal-order.schema.json", &message);
    check_contract("events/order-stored.schema.json", &pretty(&stored_schema()));
}

#[test]
fn the_list_of_personal_fields_matches_the_contract() {
    check_contract("personal-fields.txt", &domain::erasure::personal_fields());
}
