//! Tests of large requests.

use std::collections::BTreeSet;

use domain::warehouse::sample::{inbound_asn, outbound_shipment, receipt};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_pallet_of_ten_thousand_units_is_split_stored_and_queued_in_one_request() {
    let app = TestApp::start().await;
    let pallet = outbound_shipment("PALLET", 10_000);
    let response = app.accept("/v1/outbound_shipments", &pallet).await;
    let messages = response["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &response["units"]), (10, &json!(10_000)));
    assert_eq!(messages[9]["asn_number"], "PALLET_10");
    let arrivals = app.delivered(10).await;
    let numbers: BTreeSet<_> =
        arrivals.iter().map(|it| it.body["asn_number"].to_string()).collect();
    let expected = (1..=10).map(|part| format!("\"PALLET_{part}\"")).collect();
    assert_eq!(numbers, expected, "in any order: each part is a fact of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_units_are_received_in_one_request() {
    let app = TestApp::start().await;
    let asn = inbound_asn("IN-1", 1000);
    app.accept("/v1/inbound_asns", &asn).await;
    let batch: Vec<_> = (1..=1000).map(|unit| receipt("IN-1", unit)).collect();
    let response = app.accept("/v1/receipts", &json!({ "receipts": batch })).await;
    assert_eq!(response["message"], "1000 units received");
    let (_, shown) = app.get("acme", "/v1/inbound_asns/IN-1").await;
    assert_eq!(shown["received"], 1000);
}
