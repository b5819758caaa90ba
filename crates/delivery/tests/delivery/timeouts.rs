//! Timeouts of endpoints.

use serde_json::json;

use crate::test_app::{TIMEOUT, TestApp, merchant, message, store_merchant};

#[tokio::test(flavor = "multi_thread")]
async fn the_timeout_of_an_endpoint_is_limited_by_the_lease() {
    let settings = [
        ("DELIVERY__LEASE", "6s"),
        ("DELIVERY__ATTEMPT_TIMEOUT", "1s"),
        ("DELIVERY__RETRIES", "0"),
    ];
    let app = TestApp::start(&settings).await;
    let mut slow = merchant("acme", 2, &app.sandbox.url(""));
    slow.endpoints.values_mut().for_each(|endpoint| endpoint.timeout_ms = Some(120_000));
    store_merchant(&app.pool, &slow).await;
    app.wait_for_merchant("acme", 2).await;
    app.behave(json!([{"do": "hang", "times": "always"}])).await;
    app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let timed_out = "SELECT count(*) AS n FROM delivery_attempts \
                   WHERE outcome = 'timed_out' AND latency_ms BETWEEN 1500 AND 5900";
    assert_eq!(app.count(timed_out).await, 1);
    app.stop().await;
}
