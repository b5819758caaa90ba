//! The contract files match the code.

use chrono::DateTime;
use domain::json::{Document, object};
use domain::order::{
    OrderMessage, OrderPolicy, message_schema, stored_in_bulk_schema, stored_schema,
};
use testkit::check_contract;

use super::*;
use crate::erasures::ErasureRequest;

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
    let in_bulk = pretty(&stored_in_bulk_schema());
    check_contract("events/order-stored_in_bulk.schema.json", &in_bulk);
}

#[test]
fn the_list_of_personal_fields_matches_the_contract() {
    check_contract("personal-fields.txt", &domain::erasure::personal_fields());
}

#[test]
fn the_api_document_and_the_readers_agree_on_request_bodies() {
    let mut bodies = testkit::RequestBodies::of::<App>(json!({}));
    bodies.skip_common();
    let now = DateTime::from_timestamp(2_000_000_000, 0).unwrap();
    let read = |body: &Document| OrderMessage::read(body, OrderPolicy::default(), now);
    bodies.check("POST /returns_portal_orders", &[], read);
    let conditional = ["$.email", "order_identifiers[]"];
    bodies.check("POST /v1/erasures", &conditional, |body| body.read(object(ErasureRequest::read)));
    bodies.finish();
}
