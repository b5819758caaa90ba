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
    let spoil = |kind: MessageKind, body: Value| {
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
    spoil(MessageKind::OutboundAsn, asn.clone());
    asn["cartons"][0]["details"][0]["quantity"] = json!(1);
    asn["status"] = json!("cancelled");
    spoil(MessageKind::OutboundAsn, asn);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_samples_that_try_an_endpoint_keep_the_schemas() {
    let warehouse = Warehouse::open().await;
    let url = format!("{}/v1/endpoints/acme/check", warehouse.started.url);
    let operator = warehouse.issuer.token(None, "operator");
    let request = warehouse.client.post(url).bearer_auth(operator).json(&json!({}));
    let (status, checked) = answer(request).await;
    assert_eq!(status, 200, "{checked}");
    let results = checked["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["accepted"] == true), "{checked}");
    assert_eq!(warehouse.arrivals().await.len(), KINDS.len());
}
