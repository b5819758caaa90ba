//! Labels as shoppers see them.

use super::super::labels::{label, with_labels};
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
    let (_, shown) = get(&app, &path, &own).await;
    // The words of the provider are for staff.
    let expected = json!([{ "parcel": 1, "state": "refused", "refusal": "too_heavy" }]);
    assert_eq!(shown["labels"], expected);
    let (_, listed) = get(&app, "/v1/returns?order_identifier=A", &own).await;
    assert_eq!(listed["returns"][0].get("labels"), None);

    let refused = app.newest_request().await;
    assert_eq!(app.post_label(&refused, "retry", "returns", &json!({})).await.0, StatusCode::OK);
    app.until_labels("state = 'bought'").await;
    let (_, shown) = get(&app, &path, &own).await;
    let expected = json!([{ "parcel": 1, "state": "bought", "tracking_number": "1Z-1" }]);
    assert_eq!(shown["labels"], expected);
    assert_eq!(shown["units"][0]["label"]["url"], "https://carrier.example/1Z-1.pdf");
    // Nothing leads to a label that is canceled.
    let bought = app.newest_request().await;
    assert_eq!(app.post_label(&bought, "cancel", "returns", &json!({})).await.0, StatusCode::OK);
    let (_, shown) = get(&app, &path, &own).await;
    assert_eq!(shown["labels"][0]["state"], "canceled");
    assert_eq!(shown["units"][0]["label"], Value::Null);
}
