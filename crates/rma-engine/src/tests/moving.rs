//! What carriers report, and the merchant's refund at the end of it.

use super::projecting::{later, order, refunded};
use super::*;

fn report(id: &str, event: &str, rma: Option<&str>, number: Option<&str>) -> Value {
    json!({
        "event_identifier": id, "event": event, "rma_identifier": rma, "tracking_number": number,
    })
}

#[tokio::test]
async fn a_parcel_moves_forward_only_and_each_report_counts_once() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 2)).await;
    let rma = stage.start_return(&refund_of("A", &[1, 2])).await;
    let label = report("e1", "label", Some(&rma), Some("1Z9"));
    let (status, answer) = stage.carrier(&label).await;
    assert_eq!((status, &answer["applied"]), (StatusCode::OK, &json!(true)));
    assert_eq!(stage.carrier(&label).await, (status, answer));
    let other = report("e1", "accepted", Some(&rma), Some("1Z9"));
    assert_eq!(stage.carrier(&other).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    for (id, event) in [("e2", "in_transit"), ("e3", "accepted"), ("e4", "delivered")] {
        let (status, answer) = stage.carrier(&report(id, event, None, Some("1Z9"))).await;
        assert_eq!((status, &answer["applied"]), (StatusCode::OK, &json!(event != "accepted")));
    }
    let told = ["rma.created", "rma.tracking_updated", "rma.in_transit", "rma.tracking_updated"];
    assert_eq!(stage.told().await, told);
    let last = stage.arrivals("acme").await.pop().unwrap().body;
    assert_eq!(last["items"][1]["package_tracking_status"], "DELIVERED");
    assert_eq!(last["items"][1]["tracking_number"], "1Z9");
    let (_, timeline) = stage.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
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
async fn a_number_that_comes_after_the_drop_off_names_the_parcel() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 1)).await;
    let mut body = refund_of("A", &[1]);
    body["return_method"] = json!("express-returns");
    let rma = stage.start_return(&body).await;
    for reported in [
        report("e1", "accepted", Some(&rma), None),
        report("e2", "label", Some(&rma), Some("1Z9")),
        report("e3", "in_transit", None, Some("1Z9")),
    ] {
        let (status, answer) = stage.carrier(&reported).await;
        assert_eq!((status, &answer["applied"]), (StatusCode::OK, &json!(true)));
    }
    let told = ["rma.created", "rma.dropped_off", "rma.tracking_updated", "rma.in_transit"];
    assert_eq!(stage.told().await, told);
    let numbered = &stage.arrivals("acme").await[2].body["items"][0];
    assert_eq!(numbered["tracking_number"], "1Z9");
    assert_eq!(numbered["package_tracking_status"], "ACCEPTED");
}

#[tokio::test]
async fn an_older_label_that_comes_late_does_not_rename_the_parcel() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 1)).await;
    let rma = stage.start_return(&refund_of("A", &[1])).await;
    for (number, made_at) in [("1Z9", "2026-03-10T10:05:00Z"), ("1Z8", "2026-03-10T10:00:00Z")] {
        let mut label = report(number, "label", Some(&rma), Some(number));
        label["occurred_at"] = json!(made_at);
        let (status, answer) = stage.carrier(&label).await;
        assert_eq!((status, &answer["applied"]), (StatusCode::OK, &json!(number == "1Z9")));
    }
    let (status, answer) = stage.carrier(&report("e1", "in_transit", None, Some("1Z9"))).await;
    assert_eq!((status, &answer["applied"]), (StatusCode::OK, &json!(true)), "{answer}");
    assert_eq!(stage.told().await, ["rma.created", "rma.tracking_updated", "rma.in_transit"]);
}

/// Two returns whose units travel in one parcel, 1Z9.
async fn one_parcel(stage: &Stage) -> [String; 2] {
    stage.store("acme", &order("A", 4)).await;
    let first = stage.start_return(&refund_of("A", &[1, 2])).await;
    let second = stage.start_return(&refund_of("A", &[3, 4])).await;
    for rma in [&first, &second] {
        let (status, answer) = stage.carrier(&report(rma, "label", Some(rma), Some("1Z9"))).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }
    [first, second]
}

#[tokio::test]
async fn a_canceled_return_does_not_hold_up_the_parcel_of_another() {
    let stage = Stage::set().await;
    let [first, second] = one_parcel(&stage).await;
    let path = format!("/v1/returns/{first}/cancel");
    assert_eq!(stage.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    let (status, answer) = stage.carrier(&report("e1", "in_transit", None, Some("1Z9"))).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    assert_eq!(answer["returns"].as_array().unwrap().len(), 1);
    assert_eq!(answer["returns"][0]["rma_identifier"], second);
    assert_eq!(stage.show(&second).await["units"][0]["package_tracking_status"], "TRANSIT");
    assert_eq!(stage.show(&first).await["units"][0]["package_tracking_status"], "PRE_TRANSIT");
    // Nothing is left of a parcel whose returns were all canceled.
    stage.store("acme", &order("B", 1)).await;
    let third = stage.start_return(&refund_of("B", &[1])).await;
    stage.carrier(&report("e2", "label", Some(&third), Some("1Z8"))).await;
    let path = format!("/v1/returns/{third}/cancel");
    assert_eq!(stage.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    let (status, _) = stage.carrier(&report("e3", "in_transit", None, Some("1Z8"))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_report_that_names_units_reaches_each_return_of_the_parcel() {
    let stage = Stage::set().await;
    let [first, second] = one_parcel(&stage).await;
    let mut named = report("e1", "in_transit", None, Some("1Z9"));
    named["units"] = json!([unit("A", 1), unit("A", 4)]);
    let (status, answer) = stage.carrier(&named).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    for (rma, moved) in
        [(&first, ["TRANSIT", "PRE_TRANSIT"]), (&second, ["PRE_TRANSIT", "TRANSIT"])]
    {
        let shown = stage.show(rma).await;
        let status = |index: usize| shown["units"][index]["package_tracking_status"].clone();
        assert_eq!([status(0), status(1)], moved);
    }
    // Units of one return only leave the other alone.
    let mut named = report("e2", "delivered", None, Some("1Z9"));
    named["units"] = json!([unit("A", 1)]);
    let (_, answer) = stage.carrier(&named).await;
    assert_eq!(answer["returns"].as_array().unwrap().len(), 1);
    // A unit of neither is the caller's mistake, and nothing of the report counts.
    let mut named = report("e3", "delivered", None, Some("1Z9"));
    named["units"] = json!([unit("A", 4), unit("A", 5)]);
    assert_eq!(stage.carrier(&named).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(stage.show(&second).await["units"][1]["package_tracking_status"], "TRANSIT");
}

#[tokio::test]
async fn two_carriers_may_give_their_reports_the_same_identifier() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 1)).await;
    let rma = stage.start_return(&refund_of("A", &[1])).await;
    let acme = [("x-service-id", "acme")];
    let reports = [
        ("one", report("1", "label", Some(&rma), Some("1Z9"))),
        ("two", report("1", "in_transit", Some(&rma), Some("1Z9"))),
    ];
    for (client, body) in reports {
        let token = stage.issuer.token_of(client, None, "carrier");
        let path = "/v1/carrier_events";
        let (status, answer) = stage.send(Method::POST, path, &token, &acme, Some(&body)).await;
        assert_eq!((status, &answer["applied"]), (StatusCode::OK, &json!(true)), "{answer}");
    }
}

#[tokio::test]
async fn reports_of_strangers_find_nothing() {
    let stage = Stage::set().await;
    stage.store("acme", &order("A", 1)).await;
    let rma = stage.start_return(&refund_of("A", &[1])).await;
    let token = stage.issuer.token(None, "carrier");
    let label = report("e1", "label", Some(&rma), Some("1Z9"));
    let rival = [("x-service-id", "rival")];
    let path = "/v1/carrier_events";
    let (status, _) = stage.send(Method::POST, path, &token, &rival, Some(&label)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = stage.send(Method::POST, path, &token, &[], Some(&label)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(stage.post(path, "acme", &label).await.0, StatusCode::FORBIDDEN);
    let lost = report("e1", "in_transit", None, Some("none"));
    assert_eq!(stage.carrier(&lost).await.0, StatusCode::NOT_FOUND);
    let nothing = json!({ "event_identifier": "e1", "event": "label" });
    assert_eq!(stage.carrier(&nothing).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    // A report that was refused may come again under the same identifier.
    assert_eq!(stage.carrier(&label).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_refund_of_every_unit_closes_the_return() {
    let stage = Stage::set().await;
    let order = order("A", 3);
    stage.store("acme", &order).await;
    let first = stage.start_return(&refund_of("A", &[1, 2])).await;
    let second = stage.start_return(&refund_of("A", &[3])).await;
    // Half of the first: remembered, and nothing is told.
    let half = refunded(&order, "R1", 1, Some(&first));
    stage.store("acme", &half).await;
    assert_eq!(stage.show(&first).await["status"], "CREATED");
    assert_eq!(stage.show(&first).await["units"][0]["refunded_by"], "R1");
    // The oldest open return first, then the other.
    let rest = refunded(&half, "R2", 2, None);
    stage.store("acme", &rest).await;
    stage.store("acme", &later(&rest, 1)).await;
    stage.publish("acme", &half).await;
    stage.store("acme", &later(&rest, 2)).await;
    for rma in [&first, &second] {
        assert_eq!(stage.show(rma).await["status"], "REFUNDED");
    }
    let mut told = stage.told().await;
    told.sort_unstable();
    assert_eq!(told, ["rma.created", "rma.created", "rma.refunded", "rma.refunded"]);
    // Nothing is left to refund, and nobody is told.
    stage.store("acme", &refunded(&later(&rest, 2), "R3", 1, Some(&first))).await;
    let (_, listed) = stage.get("/v1/discrepancies", "acme").await;
    let found = listed["discrepancies"].as_array().unwrap();
    assert_eq!((found.len(), &found[0]["detail"]["kind"]), (1, &json!("refund_exceeds_return")));
    assert_eq!(stage.get("/v1/discrepancies", "rival").await.1["discrepancies"], json!([]));
    assert_eq!(stage.told().await.len(), 4);
}
