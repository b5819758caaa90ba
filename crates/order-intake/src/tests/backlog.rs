//! Tests of `GET /v1/backlog`.

use super::*;

#[tokio::test]
async fn staff_see_the_backlog_and_merchants_do_not() {
    let app = TestApp::alone().await;
    let get = async |merchant: Option<&str>, scope: &str| {
        let request = app.client.get(format!("{}/v1/backlog", app.service.url));
        let token = app.issuer.token(merchant, scope);
        read(request.bearer_auth(token).send().await.unwrap()).await
    };
    for scope in ["operator", "read"] {
        let (status, backlog) = get(None, scope).await;
        assert_eq!(status, StatusCode::OK, "{backlog}");
        assert_eq!(
            (&backlog["service"], &backlog["broker"]),
            (&json!("order-intake"), &json!("available"))
        );
        let queues = backlog["queues"].as_array().unwrap();
        let names: Vec<_> = queues.iter().map(|queue| queue["queue"].clone()).collect();
        let namespace = &app.service.namespace.name;
        let expected = ["merchant.changed.v1", "token.revoked.v1", "shopper.erasure_confirmed.v1"]
            .map(|event| json!(format!("{namespace}.order-intake.{event}")));
        assert_eq!(names, expected);
        assert!(queues.iter().all(|queue| queue["consumers"] == 1), "{backlog}");
    }
    for (merchant, scope) in [(Some("acme"), "read"), (Some("acme"), "orders"), (None, "orders")] {
        assert_eq!(get(merchant, scope).await.0, StatusCode::FORBIDDEN, "{merchant:?} {scope}");
    }
}
