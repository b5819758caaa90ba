//! Tests of inbound ASNs.

use domain::warehouse::sample::{inbound_asn, receipt};

use super::*;

const PATH: &str = "/v1/inbound_asns";

#[tokio::test(flavor = "multi_thread")]
async fn an_asn_shows_expected_and_received_units() {
    let app = TestApp::start().await;
    let mut asn = inbound_asn("IN-1", 2);
    asn["cartons"][0]["details"][1]["quantity"] = json!(5);
    let response = app.accept(PATH, &asn).await;
    assert_eq!((&response["lines"], &response["expected"]), (&json!(2), &json!(6)));
    app.accept("/v1/receipts", &receipt("IN-1", 1)).await;
    let (status, shown) = app.get("acme", "/v1/inbound_asns/IN-1").await;
    assert_eq!((status, &shown["expected"], &shown["received"]), (200, &json!(6), &json!(1)));
    assert_eq!(shown["to"], asn["to"]);
    let line = &shown["lines"][0];
    assert_eq!((&line["line_identifier"], &line["received"]), (&json!("L-1"), &json!(1)));
    assert_eq!(
        (&line["carton_identifier"], &line["reference"]["type"]),
        (&json!("BOX-1"), &json!("RMA"))
    );
    assert_eq!(shown["lines"][1]["received"], 0);
    let (_, page) = app.get("acme", PATH).await;
    assert_eq!(page["inbound_asns"][0]["received"], 1);
    assert_eq!(app.get("rival", "/v1/inbound_asns/IN-1").await.0, 404);
    assert_eq!(app.get("rival", PATH).await.1, json!({ "inbound_asns": [] }));
    app.delivered(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asn_can_change_until_its_first_unit_is_received() {
    let app = TestApp::start().await;
    let first = app.accept(PATH, &inbound_asn("IN-1", 2)).await;
    assert_eq!(app.accept(PATH, &inbound_asn("IN-1", 2)).await, first);
    let used = field_error("$.asn_number", "invalid");
    assert_eq!(app.reject(PATH, &inbound_asn("IN-1", 3)).await, used);

    let one = "/v1/inbound_asns/IN-1";
    let (status, changed) = app.put(one, &inbound_asn("IN-1", 3)).await;
    assert_eq!((status, &changed["expected"]), (200, &json!(3)));
    let (status, refused) = app.put(one, &inbound_asn("IN-2", 3)).await;
    assert_eq!((status, field_errors(&refused)), (422, used.clone()));
    let (status, _) = app.put("/v1/inbound_asns/IN-9", &inbound_asn("IN-9", 3)).await;
    assert_eq!(status, 404);

    app.accept("/v1/receipts", &receipt("IN-1", 3)).await;
    let (status, refused) = app.put(one, &inbound_asn("IN-1", 4)).await;
    assert_eq!((status, field_errors(&refused)), (422, used));
    assert_eq!(app.put(one, &inbound_asn("IN-1", 3)).await.0, 200, "changes nothing");
    app.delivered(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asn_can_change_after_a_unit_was_rejected() {
    let app = TestApp::start().await;
    app.accept(PATH, &inbound_asn("IN-1", 2)).await;
    let mut rejected = receipt("IN-1", 1);
    rejected["reject_reason"] = json!("another product");
    app.accept("/v1/receipts", &rejected).await;
    let one = "/v1/inbound_asns/IN-1";
    let (status, changed) = app.put(one, &inbound_asn("IN-1", 3)).await;
    assert_eq!((status, &changed["expected"]), (200, &json!(3)));

    // The rejected unit is received after all.
    app.accept("/v1/receipts", &receipt("IN-1", 1)).await;
    let (status, refused) = app.put(one, &inbound_asn("IN-1", 4)).await;
    assert_eq!((status, field_errors(&refused)), (422, field_error("$.asn_number", "invalid")));
    app.delivered(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn identifiers_may_be_json_numbers() {
    let app = TestApp::start().await;
    let mut asn = inbound_asn("", 1);
    asn["asn_number"] = json!(12345);
    asn["cartons"][0]["details"][0]["line_identifier"] = json!(1);
    let response = app.accept(PATH, &asn).await;
    assert_eq!(response["asn_number"], 12345);
    assert_eq!(app.get("acme", "/v1/inbound_asns/12345").await.1["asn_number"], 12345);
    let mut unit = receipt("", 1);
    unit["asn_number"] = json!(12345);
    unit["line_identifier"] = json!("1");
    unit["unit_identifier"] = json!(9_007_199_254_740_993_i64);
    app.accept("/v1/receipts", &unit).await;
    let arrivals = app.delivered(1).await;
    let body = &arrivals[0].body;
    assert_eq!((&body["asn_number"], &body["line_identifier"]), (&json!(12345), &json!("1")));
    assert_eq!(body["unit_identifier"], 9_007_199_254_740_993_i64);
}
