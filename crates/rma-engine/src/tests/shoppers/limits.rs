//! Limits of failed look-ups, for an order and for an address.

use super::*;

fn wrong(order: &str) -> Value {
    json!({ "order_identifier": order, "email": "eve@shop.example" })
}

fn right() -> Value {
    json!({ "order_identifier": "A", "email": EMAIL })
}

async fn age(app: &TestApp, minutes: u32) {
    let statement = format!(
        "UPDATE lookup_failures SET at = at - interval '{minutes} minutes' WHERE merchant = 'acme'"
    );
    app.change_rows(&statement).await;
}

/// The seconds that a limited look-up has to wait.
async fn retry_after(app: &TestApp, body: &Value) -> u64 {
    let token = app.issuer.token_of("portal", None, "shopper");
    let request = app.client.post(format!("{}/v1/lookups", app.service.url)).bearer_auth(token);
    let response =
        request.header("x-service-id", app.service.own("acme")).json(body).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    response.headers()["retry-after"].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn five_failures_of_an_order_make_everyone_wait_for_it() {
    let app = start_with_order().await;
    app.store("acme", &adas_order("B", 1)).await;
    for order in ["A", "no such order"] {
        for number in 1..=5 {
            let address = format!("192.0.2.{number}");
            let (status, _) = look_up(&app, &address, &wrong(order)).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{order} {number}");
        }
        // Another address, and for A the right e-mail address.
        let body = if order == "A" { right() } else { wrong(order) };
        let (status, refusal) = look_up(&app, "198.51.100.1", &body).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{order}");
        let message = refusal["message"].as_str().unwrap();
        let limit = "too many look-ups of this order, or from this address, failed within an hour; \
                     try again in ";
        assert!(message.starts_with(limit), "{message}");
    }
    let wait = retry_after(&app, &right()).await;
    assert!((3400..=3600).contains(&wait), "{wait}");
    let other = json!({ "order_identifier": "B", "email": EMAIL });
    assert_eq!(look_up(&app, "192.0.2.1", &other).await.0, StatusCode::OK);
    // Rejected look-ups do not count, so the order is free after an hour.
    age(&app, 50).await;
    assert_eq!(look_up(&app, "192.0.2.1", &right()).await.0, StatusCode::TOO_MANY_REQUESTS);
    age(&app, 11).await;
    assert_eq!(look_up(&app, "192.0.2.1", &right()).await.0, StatusCode::OK);
}

/// Otherwise the limit would tell which orders exist.
#[tokio::test]
async fn all_spellings_of_a_number_count_together_whether_the_order_exists_or_not() {
    let app = start_with_order().await;
    for spellings in [["A", "a", "#A", " #a"], ["No-1", "no-1", "#NO-1", " #no-1"]] {
        for number in 0..5 {
            let address = format!("192.0.2.{number}");
            let (status, _) = look_up(&app, &address, &wrong(spellings[number % 4])).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{spellings:?} {number}");
        }
        for spelling in spellings {
            let (status, _) = look_up(&app, "198.51.100.1", &wrong(spelling)).await;
            assert_eq!(status, StatusCode::TOO_MANY_REQUESTS, "{spelling}");
        }
    }
}

#[tokio::test]
async fn twenty_failures_from_an_address_make_it_wait_for_every_order() {
    let app = start_with_order().await;
    for number in 1..=20 {
        let (status, _) = look_up(&app, "192.0.2.1", &wrong(&format!("B-{number}"))).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{number}");
    }
    assert_eq!(look_up(&app, "192.0.2.1", &right()).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(look_up(&app, "192.0.2.2", &right()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn failures_of_a_merchant_do_not_limit_another() {
    let app = start(|_| {}).await;
    app.store("acme", &adas_order("A", 1)).await;
    for number in 1..=5 {
        let token = app.issuer.token_of("portal", None, "shopper");
        let address = own_address(&app, &format!("192.0.2.{number}"));
        let headers = [("x-service-id", "rival"), ("x-forwarded-for", address.as_str())];
        let body = wrong("A");
        let (status, _) =
            app.send(Method::POST, "/v1/lookups", &token, &headers, Some(&body)).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
    }
    assert_eq!(look_up(&app, "192.0.2.1", &right()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn failures_that_no_longer_count_are_deleted() {
    let app = start(|_| {}).await;
    look_up(&app, "192.0.2.1", &wrong("A")).await;
    age(&app, 61).await;
    look_up(&app, "192.0.2.1", &wrong("B")).await;
    crate::shoppers::lookups::delete_expired(&app.pool, Clock::system().now()).await.unwrap();
    let left = "SELECT count(*) AS n FROM lookup_failures \
                WHERE merchant = 'acme' AND at > now() - interval '1 hour'";
    assert_eq!(app.number(left).await, 1);
    assert_eq!(
        app.number("SELECT count(*) AS n FROM lookup_failures WHERE merchant = 'acme'").await,
        1
    );
}
