//! Carrier reports, and the merchant's refund afterwards.

use super::projecting::{later, order, refunded};
use super::*;

pub(super) fn report(id: &str, event: &str, rma: Option<&str>, number: Option<&str>) -> Value {
    json!({
        "event_identifier": id, "event": event, "rma_identifier": rma, "tracking_number": number,
    })
}

#[tokio::test]
async fn a_parcel_moves_forward_only_and_each_report_counts_once() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let label = report("e1", "label", Some(&rma), Some("1Z9"));
    let (status, response) = app.carrier(&label).await;
    assert_eq!((status, &response["applied"]), (StatusCode::OK, &json!(true)));
    assert_eq!(app.carrier(&label).await, (status, response));
    let other = report("e1", "accepted", Some(&rma), Some("1Z9"));
    assert_eq!(app.carrier(&other).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    for (id, event) in [("e2", "in_transit"), ("e3", "accepted"), ("e4", "delivered")] {
        let (status, response) = app.carrier(&report(id, event, None, Some("1Z9"))).await;
        assert_eq!((status, &response["applied"]), (StatusCode::OK, &json!(event != "accepted")));
    }
    let messages =
        ["rma.created", "rma.tracking_updated", "rma.in_transit", "rma.tracking_updated"];
    assert_eq!(app.sent_messages().await, messages);
    let last = app.arrivals("acme").await.pop().unwrap().body;
    assert_eq!(last["items"][1]["package_tracking_status"], "DELIVERED");
    assert_eq!(last["items"][1]["tracking_number"], "1Z9");
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let late = &timeline["entries"][3];
    assert_eq!(
        (&late["event"], &late["detail"]["event"]),
        (&json!("carrier report"), &json!("accepted"))
    );
    assert_eq!(late["detail"]["late"].as_array().unwrap().len(), 2);
    assert_eq!((&late["actor"], late.get("delivery")), (&json!("client"), None));
    assert!(timeline["entries"][2]["delivery"].is_string());
}

#[tokio::test]
async fn a_tracking_number_may_come_after_the_drop_off() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let mut body = refund_of("A", &[1]);
    body["return_method"] = json!("express-returns");
    let rma = app.start_return(&body).await;
    for reported in [
        report("e1", "accepted", Some(&rma), None),
        report("e2", "label", Some(&rma), Some("1Z9")),
        report("e3", "in_transit", None, Some("1Z9")),
    ] {
        let (status, response) = app.carrier(&reported).await;
        assert_eq!((status, &response["applied"]), (StatusCode::OK, &json!(true)));
    }
    let messages = ["rma.created", "rma.dropped_off", "rma.tracking_updated", "rma.in_transit"];
    assert_eq!(app.sent_messages().await, messages);
    let numbered = &app.arrivals("acme").await[2].body["items"][0];
    assert_eq!(numbered["tracking_number"], "1Z9");
    assert_eq!(numbered["package_tracking_status"], "ACCEPTED");
}

/// Two returns whose units travel in one parcel, 1Z9.
async fn one_parcel(app: &TestApp) -> [String; 2] {
    app.store("acme", &order("A", 4)).await;
    let first = app.start_return(&refund_of("A", &[1, 2])).await;
    let second = app.start_return(&refund_of("A", &[3, 4])).await;
    for rma in [&first, &second] {
        let (status, response) = app.carrier(&report(rma, "label", Some(rma), Some("1Z9"))).await;
        assert_eq!(status, StatusCode::OK, "{response}");
    }
    [first, second]
}

#[tokio::test]
async fn a_canceled_return_does_not_block_reports_for_another() {
    let app = TestApp::start().await;
    let [first, second] = one_parcel(&app).await;
    let path = format!("/v1/returns/{first}/cancel");
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    let (status, response) = app.carrier(&report("e1", "in_transit", None, Some("1Z9"))).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    assert_eq!(response["returns"].as_array().unwrap().len(), 1);
    assert_eq!(response["returns"][0]["rma_identifier"], second);
    assert_eq!(app.show(&second).await["units"][0]["package_tracking_status"], "TRANSIT");
    assert_eq!(app.show(&first).await["units"][0]["package_tracking_status"], "PRE_TRANSIT");
    // A parcel without active returns is unknown.
    app.store("acme", &order("B", 1)).await;
    let third = app.start_return(&refund_of("B", &[1])).await;
    app.carrier(&report("e2", "label", Some(&third), Some("1Z8"))).await;
    let path = format!("/v1/returns/{third}/cancel");
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    let (status, _) = app.carrier(&report("e3", "in_transit", None, Some("1Z8"))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_report_that_names_units_reaches_each_return_of_the_parcel() {
    let app = TestApp::start().await;
    let [first, second] = one_parcel(&app).await;
    let mut named = report("e1", "in_transit", None, Some("1Z9"));
    named["units"] = json!([unit("A", 1), unit("A", 4)]);
    let (status, response) = app.carrier(&named).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    for (rma, moved) in
        [(&first, ["TRANSIT", "PRE_TRANSIT"]), (&second, ["PRE_TRANSIT", "TRANSIT"])]
    {
        let shown = app.show(rma).await;
        let status = |index: usize| shown["units"][index]["package_tracking_status"].clone();
        assert_eq!([status(0), status(1)], moved);
    }
    // A report about units of one return does not change the other.
    let mut named = report("e2", "delivered", None, Some("1Z9"));
    named["units"] = json!([unit("A", 1)]);
    let (_, response) = app.carrier(&named).await;
    assert_eq!(response["returns"].as_array().unwrap().len(), 1);
    // A unit of neither return is a validation error, and the report has no effect.
    let mut named = report("e3", "delivered", None, Some("1Z9"));
    named["units"] = json!([unit("A", 4), unit("A", 5)]);
    assert_eq!(app.carrier(&named).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(app.show(&second).await["units"][1]["package_tracking_status"], "TRANSIT");
}

#[tokio::test]
async fn two_carriers_may_use_the_same_event_identifier() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let acme = [("x-service-id", "acme")];
    let reports = [
        ("one", report("1", "label", Some(&rma), Some("1Z9"))),
        ("two", report("1", "in_transit", Some(&rma), Some("1Z9"))),
    ];
    for (client, body) in reports {
        let token = app.issuer.token_of(client, None, "carrier");
        let path = "/v1/carrier_events";
        let (status, response) = app.send(Method::POST, path, &token, &acme, Some(&body)).await;
        assert_eq!((status, &response["applied"]), (StatusCode::OK, &json!(true)), "{response}");
    }
}

#[tokio::test]
async fn reports_about_unknown_returns_are_rejected() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let token = app.issuer.token(None, "carrier");
    let label = report("e1", "label", Some(&rma), Some("1Z9"));
    let rival = [("x-service-id", "rival")];
    let path = "/v1/carrier_events";
    let (status, _) = app.send(Method::POST, path, &token, &rival, Some(&label)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = app.send(Method::POST, path, &token, &[], Some(&label)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(app.post(path, "acme", &label).await.0, StatusCode::FORBIDDEN);
    let lost = report("e1", "in_transit", None, Some("none"));
    assert_eq!(app.carrier(&lost).await.0, StatusCode::NOT_FOUND);
    let nothing = json!({ "event_identifier": "e1", "event": "label" });
    assert_eq!(app.carrier(&nothing).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    // A rejected report can be sent again with the same identifier.
    assert_eq!(app.carrier(&label).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_refund_of_every_unit_closes_the_return() {
    let app = TestApp::start().await;
    let order = order("A", 3);
    app.store("acme", &order).await;
    let first = app.start_return(&refund_of("A", &[1, 2])).await;
    let second = app.start_return(&refund_of("A", &[3])).await;
    // The status changes with the last unit.
    let half = refunded(&order, "R1", 1, Some(&first));
    app.store("acme", &half).await;
    assert_eq!(app.show(&first).await["status"], "CREATED");
    assert_eq!(app.show(&first).await["units"][0]["refunded_by"], "R1");
    // Refunds cover the oldest open return first.
    let rest = refunded(&half, "R2", 2, None);
    app.store("acme", &rest).await;
    app.store("acme", &later(&rest, 1)).await;
    app.publish("acme", &half).await;
    app.store("acme", &later(&rest, 2)).await;
    for rma in [&first, &second] {
        assert_eq!(app.show(rma).await["status"], "REFUNDED");
    }
    let mut messages = app.sent_messages().await;
    messages.sort_unstable();
    let expected = ["rma.created", "rma.created", "rma.partially_refunded"];
    assert_eq!(messages, [&expected[..], &["rma.refunded", "rma.refunded"]].concat());
    // Nothing is left to refund, and the merchant is told about the refund all the same.
    app.store("acme", &refunded(&later(&rest, 2), "R3", 1, Some(&first))).await;
    assert_eq!(app.sent_messages().await.len(), 6);
    let (_, listed) = app.get("/v1/discrepancies", "acme").await;
    let found = listed["discrepancies"].as_array().unwrap();
    let mut kinds: Vec<_> = found.iter().map(|it| it["detail"]["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["refund_above_paid", "refund_exceeds_return"]);
    assert_eq!(app.get("/v1/discrepancies", "rival").await.1["discrepancies"], json!([]));
    assert_eq!(app.sent_messages().await.len(), 6);
}
