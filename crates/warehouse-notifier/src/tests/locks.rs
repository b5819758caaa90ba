//! Requests about a locked row leave connections to others.

use domain::warehouse::sample::{confirmation, inbound_asn, outbound_shipment};
use testkit::check_requests_about_locked_rows;

use super::*;

/// Sends requests of acme about rows that another transaction has locked, and a report for rival meanwhile.
async fn check(app: &TestApp, lock: &str, method: Method, path: &str, body: Value) {
    let request = async || send(app.request(method.clone(), "acme", path).json(&body)).await;
    let other = async || {
        let asn = inbound_asn("IN-OTHER", 1);
        let (status, response) =
            send(app.request(Method::POST, "rival", "/v1/inbound_asns").json(&asn)).await;
        assert_eq!(status, 201, "{response}");
    };
    let database = &app.service.database;
    for (status, response) in check_requests_about_locked_rows(database, lock, request, other).await
    {
        // On a slow machine the time of a request can be over before the lock is released.
        assert!([200, 201, 429].contains(&status), "{method} {path}: {status} {response}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_locked_inbound_asn_leave_connections_to_others() {
    let app = TestApp::alone().await;
    app.accept("/v1/inbound_asns", &inbound_asn("IN-1", 1)).await;
    // A repeated registration waits until it is known whether the first one stays.
    let deleted = "DELETE FROM inbound_asns WHERE asn_number = 'IN-1'";
    check(&app, deleted, Method::POST, "/v1/inbound_asns", inbound_asn("IN-1", 1)).await;
    let locked = "SELECT FROM inbound_asns WHERE asn_number = 'IN-1' FOR UPDATE";
    check(&app, locked, Method::PUT, "/v1/inbound_asns/IN-1", inbound_asn("IN-1", 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_locked_shipment_leave_connections_to_others() {
    let app = TestApp::alone().await;
    app.accept("/v1/outbound_shipments", &outbound_shipment("ASN-1", 1)).await;
    app.delivered(1).await;
    let locked = "SELECT FROM outbound_shipments WHERE asn_number = 'ASN-1' FOR UPDATE";
    let shipped = json!({ "status": "shipped" });
    check(&app, locked, Method::PATCH, "/v1/outbound_shipments/ASN-1", shipped).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_locked_order_leave_connections_to_others() {
    let app = TestApp::alone().await;
    let path = "/v1/drop_shipments/confirmations";
    app.accept(path, &confirmation("SO-1")).await;
    app.delivered(1).await;
    let locked = "SELECT FROM drop_orders WHERE identifier = 'SO-1' FOR UPDATE";
    check(&app, locked, Method::POST, path, confirmation("SO-1")).await;
}
