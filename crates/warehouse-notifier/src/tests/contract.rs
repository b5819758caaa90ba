//! Tests that the contract files match the code.

use domain::json::Document;
use domain::warehouse::{
    DropShipment, DropShipmentKind, InboundAsn, OutboundShipment, ReceiptBatch, ShipmentChange,
    Warehouses,
};
use testkit::check_contract;

use super::*;

#[test]
fn the_api_document_is_up_to_date() {
    let document = platform::openapi::<App>().to_yaml().unwrap();
    check_contract("openapi/warehouse-notifier.yaml", &document);
}

#[test]
fn the_schemas_of_messages_are_up_to_date() {
    for kind in KINDS {
        let schema = message_schema(kind).unwrap();
        check_contract(&format!("messages/{kind}.schema.json"), &format!("{schema:#}\n"));
    }
}

#[test]
fn schemas_reject_invalid_messages() {
    let assert_invalid = |kind: MessageKind, body: Value| {
        assert!(!SCHEMAS[kind.default_path()].is_valid(&body), "{kind} {body}");
    };
    for kind in KINDS {
        assert_invalid(kind, json!({}));
        assert_invalid(kind, json!([]));
    }
    let mut asn = domain::warehouse::sample::outbound_shipment("ASN-1", 1);
    asn["carrier"] = json!(null);
    assert!(SCHEMAS["/outbound_asn"].is_valid(&asn));
    asn["cartons"][0]["details"][0]["quantity"] = json!(2);
    assert_invalid(MessageKind::OutboundAsn, asn.clone());
    asn["cartons"][0]["details"][0]["quantity"] = json!(1);
    asn["status"] = json!("cancelled");
    assert_invalid(MessageKind::OutboundAsn, asn);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_messages_of_an_endpoint_check_match_their_schemas() {
    let app = TestApp::start().await;
    let url = format!("{}/v1/endpoints/{}/check", app.service.url, app.service.own("acme"));
    let operator = app.issuer.token(None, "operator");
    let request = app.client.post(url).bearer_auth(operator).json(&json!({}));
    let (status, checked) = send(request).await;
    assert_eq!(status, 200, "{checked}");
    let results = checked["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["accepted"] == true), "{checked}");
    assert_eq!(app.arrivals().await.len(), KINDS.len());
}

/// Fields with an identifier, which is not empty, with a code, which can be empty, and with flags. One schema
/// describes identifiers and codes, and none limits the length of a flag.
const IDENTIFIERS: [&str; 5] =
    ["identifier = \"\"", "/id = \"\"", "/asn_number = \"\"", ".asin", "eligibility_flags[]"];

/// A location has an identifier, a type and an address, or names a warehouse that has them.
fn check_shipments(bodies: &mut testkit::RequestBodies) {
    let address = json!({ "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501" });
    let reno = json!({
        "external_identifier": "DC-7", "address": address,
        "settings": { "stock_transfer_identifier": "STO-7" },
    });
    let warehouses = Warehouses::from([("reno".to_owned(), serde_json::from_value(reno).unwrap())]);
    let locations = ["from.identifier", "from.type", "to.identifier", "to.type", "to.address"];
    let conditional = [&IDENTIFIERS[..], &locations].concat();
    let read = |body: &Document| OutboundShipment::read(body, &warehouses);
    bodies.check("POST /v1/outbound_shipments", &conditional, read);
    let mut shipment = domain::warehouse::sample::outbound_shipment("ASN-1", 1);
    shipment["shipment_type"] = json!("freight");
    shipment["from"] = json!({ "warehouse": "reno" });
    shipment["to"] = json!({ "warehouse": "reno" });
    bodies.check_example("POST /v1/outbound_shipments", &shipment, &conditional, read);
}

#[test]
fn the_api_document_and_the_readers_agree_on_request_bodies() {
    let mut bodies =
        testkit::RequestBodies::of::<App>(json!({ "warehouse": "reno", "asin": "B000000001" }));
    bodies.skip_common();
    let drop_shipment =
        |kind: DropShipmentKind| move |body: &Document| DropShipment::read(kind, body);
    for (path, kind) in [
        ("confirmations", DropShipmentKind::Confirmation),
        ("cancellations", DropShipmentKind::Cancellation),
        ("partial_cancellations", DropShipmentKind::PartialCancellation),
    ] {
        let operation = format!("POST /v1/drop_shipments/{path}");
        bodies.check(&operation, &IDENTIFIERS, drop_shipment(kind));
    }
    let lines = [&IDENTIFIERS[..], &[".sku"]].concat();
    bodies.check("POST /v1/inbound_asns", &lines, InboundAsn::read);
    bodies.check("PUT /v1/inbound_asns/{asn_number}", &lines, InboundAsn::read);
    bodies.check("PATCH /v1/outbound_shipments/{asn_number}", &["$.status"], ShipmentChange::read);
    // A unit needs a condition or a reason of its rejection.
    let units = [&IDENTIFIERS[..], &[".initial_condition"]].concat();
    bodies.check("POST /v1/receipts", &units, ReceiptBatch::read);
    check_shipments(&mut bodies);
    bodies.finish();
}
