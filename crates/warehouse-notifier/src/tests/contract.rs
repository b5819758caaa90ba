//! The contract files say what the code says.

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
fn a_schema_refuses_what_is_no_message() {
    let spoil = |kind: Kind, body: Value| {
        assert!(!SCHEMAS[kind.default_path()].is_valid(&body), "{kind} {body}");
    };
    for kind in KINDS {
        spoil(kind, json!({}));
        spoil(kind, json!([]));
    }
    let mut asn = domain::warehouse::sample::outbound_shipment("ASN-1", 1);
    asn["carrier"] = json!(null);
    assert!(SCHEMAS["/outbound_asn"].is_valid(&asn));
    asn["cartons"][0]["details"][0]["quantity"] = json!(2);
    spoil(Kind::OutboundAsn, asn.clone());
    asn["cartons"][0]["details"][0]["quantity"] = json!(1);
    asn["status"] = json!("cancelled");
    spoil(Kind::OutboundAsn, asn);
}
