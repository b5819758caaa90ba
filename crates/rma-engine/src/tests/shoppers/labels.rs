//! Labels as shoppers see them.

use super::super::labels::{PDF, document, label, with_labels};
use super::*;

#[tokio::test]
async fn a_shopper_sees_whether_there_is_a_label_and_why_not() {
    let app = start(with_labels).await;
    app.store("acme", &adas_order("A", 2)).await;
    let own = proof(&app, "A", false);
    let refusal = json!({ "reason": "too_heavy", "detail": "over 30 kg" });
    let refused = json!({ "do": "respond", "status": 422, "body": refusal });
    app.provider_responds(&[refused, label("1Z-1")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'refused'").await;
    let path = format!("/v1/returns/{rma}");
    let refused = app.newest_request().await;
    let (_, shown) = get(&app, &path, &own).await;
    let id = &refused["label_request_id"];
    // The words of the provider are for staff.
    let expected = json!([
        { "label_request_id": id, "parcel": 1, "units": [unit("A", 1)], "state": "refused",
          "refusal": "too_heavy", "is_renewable": false }
    ]);
    assert_eq!(shown["labels"], expected);
    let (_, listed) = get(&app, "/v1/returns?order_identifier=A", &own).await;
    assert_eq!(listed["returns"][0].get("labels"), None);

    assert_eq!(app.post_label(&refused, "retry", "returns", &json!({})).await.0, StatusCode::OK);
    app.until_labels("state = 'bought'").await;
    let (_, shown) = get(&app, &path, &own).await;
    let shown_label = &shown["labels"][0];
    assert_eq!(
        (&shown_label["state"], &shown_label["tracking_number"]),
        (&json!("bought"), &json!("1Z-1"))
    );
    assert_eq!(shown["units"][0]["label"]["url"], "https://carrier.example/1Z-1.pdf");
    // Nothing leads to a label that is canceled.
    let bought = app.newest_request().await;
    assert_eq!(app.post_label(&bought, "cancel", "returns", &json!({})).await.0, StatusCode::OK);
    let (_, shown) = get(&app, &path, &own).await;
    assert_eq!(shown["labels"][0]["state"], "canceled");
    assert_eq!(shown["units"][0]["label"], Value::Null);
}

/// The document of a label request, as the portal gets it.
async fn get_document(app: &TestApp, request: &Value, proofs: &str) -> reqwest::Response {
    let token = app.issuer.token_of("portal", None, "shopper");
    let path =
        format!("/v1/label_requests/{}/document", request["label_request_id"].as_str().unwrap());
    let request = app.service.request(Method::GET, &path, &token);
    let request = request.header("x-service-id", app.service.own("acme"));
    request.header("x-shopper-proof", proofs).send().await.unwrap()
}

#[tokio::test]
async fn a_shopper_gets_the_label_as_a_file() {
    let app = start(with_labels).await;
    for name in ["A", "B"] {
        app.store("acme", &adas_order(name, 1)).await;
    }
    app.provider_responds(&[document("1Z-1")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.until_labels("state = 'bought'").await;
    let (own, other) = (proof(&app, "A", false), proof(&app, "B", false));
    let (_, shown) = get(&app, &format!("/v1/returns/{rma}"), &own).await;
    let shown = &shown["labels"][0];
    assert_eq!((&shown["document"], &shown["qr_code"]), (&json!("pdf"), &json!("PLANTED-QR")));
    let response = get_document(&app, shown, &own).await;
    assert_eq!(response.status(), StatusCode::OK);
    let file = format!("attachment; filename=\"{rma}-1.pdf\"");
    for (name, value) in [
        ("content-type", "application/pdf"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("content-disposition", file.as_str()),
    ] {
        assert_eq!(response.headers()[name], value, "{name}");
    }
    assert_eq!(response.bytes().await.unwrap(), PDF);
    for (proofs, status) in [(&*other, StatusCode::NOT_FOUND), ("nonsense", StatusCode::FORBIDDEN)]
    {
        assert_eq!(get_document(&app, shown, proofs).await.status(), status, "{proofs}");
    }
    let path =
        format!("/v1/label_requests/{}/document", shown["label_request_id"].as_str().unwrap());
    for (scope, status) in [
        ("returns", StatusCode::OK),
        ("read", StatusCode::OK),
        ("labels", StatusCode::FORBIDDEN),
        ("carrier", StatusCode::FORBIDDEN),
    ] {
        let token = app.issuer.token(Some("acme"), scope);
        let response = app.service.request(Method::GET, &path, &token).send().await.unwrap();
        assert_eq!(response.status(), status, "{scope}");
    }
    let rival = app.issuer.token(Some("rival"), "returns");
    let response = app.service.request(Method::GET, &path, &rival).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_shopper_requests_an_expired_label_again_twice() {
    let app = start(with_labels).await;
    for name in ["A", "B"] {
        app.store("acme", &adas_order(name, 1)).await;
    }
    let (own, other) = (proof(&app, "A", false), proof(&app, "B", false));
    app.provider_responds(&[label("1Z-1"), label("1Z-2"), label("1Z-3")]).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let path = format!("/v1/returns/{rma}/labels");
    for number in 1..=3 {
        app.until_labels(&format!("state = 'bought' AND tracking_number = '1Z-{number}'")).await;
        // Nothing has expired, so nothing changes.
        let (status, shown) = post(&app, &path, &own, &json!({})).await;
        assert_eq!((status, &shown["labels"][0]["state"]), (StatusCode::OK, &json!("bought")));
        let expire = "UPDATE label_requests SET state = 'expired' \
                      WHERE merchant = 'acme' AND state = 'bought'";
        app.change_rows(expire).await;
        let (_, shown) = get(&app, &format!("/v1/returns/{rma}"), &own).await;
        let shown = &shown["labels"][0];
        assert_eq!(
            (&shown["state"], &shown["is_renewable"]),
            (&json!("expired"), &json!(number < 3))
        );
        assert_eq!(post(&app, &path, &other, &json!({})).await.0, StatusCode::NOT_FOUND);
        let (status, shown) = post(&app, &path, &own, &json!({})).await;
        let is_expired = shown["labels"][0]["state"] == "expired";
        assert_eq!((status, is_expired), (StatusCode::OK, number == 3), "{shown}");
    }
    // The merchant decides about a further one.
    let (status, _) = app.post(&path, "acme", &json!({})).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(app.label_events().await, ["requested"; 4]);
}
