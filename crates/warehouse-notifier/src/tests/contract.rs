//! Tests that the contract files match the code.

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
