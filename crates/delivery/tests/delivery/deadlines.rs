//! Endpoints that want more time than others.

use serde_json::json;

use crate::stage::{SOON, Stage, introduce, merchant, message};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_asks_for_much_time_gets_what_the_lease_leaves() {
    let short =
        [("DELIVERY__LEASE", "6s"), ("DELIVERY__DEADLINE", "1s"), ("DELIVERY__RETRIES", "0")];
    let stage = Stage::new(&short).await;
    let mut patient = merchant("acme", 2, &stage.sandbox.url(""));
    patient.endpoints.values_mut().for_each(|endpoint| endpoint.timeout_ms = Some(120_000));
    introduce(&stage.pool, &patient).await;
    stage.knows("acme", 2).await;
    stage.behave(json!([{"do": "hang", "times": "always"}])).await;
    stage.append(&[message(None, "rma.created", 1)]).await;
    stage.settled(SOON).await;
    let in_time = "SELECT count(*) AS n FROM delivery_attempts \
                   WHERE outcome = 'timed_out' AND latency_ms BETWEEN 1500 AND 5900";
    assert_eq!(stage.number(in_time).await, 1);
    stage.leave().await;
}
