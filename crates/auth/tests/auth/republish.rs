//! Tests of requests to publish events again, which all services have.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{app::TestApp, person::invalid_fields};

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_event_type_is_rejected() {
    let app = TestApp::start().await;
    for (types, status) in [
        (json!(["merchant.changed.v1", "delivery.dead.v1"]), StatusCode::OK),
        (json!(["merchant.changed.v1", "merchant.chagned.v1"]), StatusCode::UNPROCESSABLE_ENTITY),
        (json!(["merchant.changed.v1", "merchant.changed"]), StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let body = json!({"since": "2026-11-15T00:00:00Z", "types": types, "dry_run": true});
        let (actual, body) = app.call(Method::POST, "/v1/events/republish", Some(body)).await;
        assert_eq!(actual, status, "{body}");
        if status != StatusCode::OK {
            assert_eq!(invalid_fields(&body), ["$.types[1]"]);
        }
    }
}
