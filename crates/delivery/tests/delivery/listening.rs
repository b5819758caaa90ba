//! Copies of messages for listeners, and samples of events.

use std::time::{Duration, Instant};

use platform::Clock;
use platform::signing::{Secret, SignedHeaders, verify};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::{SECRET, TIMEOUT, TestApp, message, token};

async fn listen(app: &TestApp, query: &str) -> Value {
    listen_with(app, "returns replay", query).await
}

async fn listen_with(app: &TestApp, scopes: &str, query: &str) -> Value {
    let own = token(scopes, Some("acme"));
    let path = format!("/v1/messages{query}");
    let (status, page) = app.api_request(&own, Method::GET, &path, &json!({})).await;
    assert_eq!(status, 200, "{page}");
    page
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_gets_signed_copies_of_new_messages() {
    let app = TestApp::with_api(&[]).await;
    app.append(&[message(Some("rma:0"), "rma.created", 0)]).await;
    let start = eventually("the first message is older than the listener", TIMEOUT, async || {
        let start = listen(&app, "").await;
        assert_eq!(start["messages"], json!([]));
        let next = start["next"].as_str().unwrap().to_owned();
        (app.count(&format!("SELECT count(*) AS n FROM delivery_messages WHERE id < '{next}'"))
            .await
            == 1)
            .then_some(next)
    })
    .await;
    let ids = app.append(&[message(Some("rma:1"), "rma.refunded", 7)]).await;
    let page = listen(&app, &format!("?after={start}&wait=20")).await;
    let [copy] = page["messages"].as_array().unwrap().as_slice() else { panic!("{page}") };
    assert_eq!((&copy["id"], &copy["event"]), (&json!(ids[0]), &json!("rma.refunded")));
    assert_eq!(copy["body"], json!("{\"number\":7}"));
    let header = |name: &str| copy["headers"][name].as_str().unwrap_or_default();
    assert_eq!((header("x-service-event"), header("x-service-sequence")), ("rma.refunded", "1"));
    assert_eq!((header("x-service-id"), header("x-service-api-version")), ("acme", "3"));
    let signed = SignedHeaders {
        id: header("webhook-id"),
        timestamp: header("webhook-timestamp"),
        signature: header("webhook-signature"),
    };
    let secrets = [Secret::parse(SECRET).unwrap()];
    let body = copy["body"].as_str().unwrap().as_bytes();
    verify(&secrets, signed, body, Clock::system().now()).unwrap();

    let unsigned = listen_with(&app, "read", &format!("?after={start}&wait=20")).await;
    let copy_of_reader = &unsigned["messages"][0];
    assert_eq!(copy_of_reader["body"], copy["body"], "{unsigned}");
    assert_eq!(copy_of_reader["headers"].get("webhook-signature"), None, "{unsigned}");

    let next = page["next"].as_str().unwrap();
    let none = listen(&app, &format!("?after={next}")).await;
    assert_eq!(none["messages"], json!([]));
    assert!(none["next"].as_str().unwrap() >= next, "{none}");
    let own = token("read", Some("acme"));
    let path = "/v1/messages?merchant=other";
    assert_eq!(app.api_request(&own, Method::GET, path, &json!({})).await.0, 403);
    let staff = token("read", None);
    assert_eq!(app.api_request(&staff, Method::GET, "/v1/messages", &json!({})).await.0, 400);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_gets_no_old_messages() {
    let app = TestApp::with_api(&[]).await;
    app.append(&[message(Some("rma:0"), "rma.created", 0)]).await;
    let own = token("read replay", Some("acme"));
    let millis = u128::try_from(Clock::system().now().timestamp_millis()).unwrap();
    let minutes_ago = |minutes: u128| Uuid::from_u128((millis - minutes * 60_000) << 80);
    for (after, expected) in [(Uuid::nil(), 400), (minutes_ago(11), 400), (minutes_ago(9), 200)] {
        let path = format!("/v1/messages?after={after}");
        let (status, page) = app.api_request(&own, Method::GET, &path, &json!({})).await;
        assert_eq!(status, expected, "{page}");
    }
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_ends_the_wait_of_a_listener() {
    let app = TestApp::with_api(&[]).await;
    let start = listen(&app, "").await["next"].as_str().unwrap().to_owned();
    let query = format!("?after={start}&wait=20");
    let (started_at, new) = (Instant::now(), [message(Some("rma:1"), "rma.created", 1)]);
    let (page, ids) = tokio::join!(listen(&app, &query), app.append(&new));
    // A new message is not copied at once, so the listener has waited for it.
    assert_eq!(page["messages"][0]["id"], json!(ids[0]), "{page}");
    assert!(started_at.elapsed() < Duration::from_secs(15), "{:?}", started_at.elapsed());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sample_of_an_event_is_sent_to_the_endpoint_of_its_kind() {
    let app = TestApp::with_api(&[]).await;
    let own = token("manage", Some("acme"));
    let post = async |query: &str| {
        let path = format!("/v1/endpoints/acme/check?{query}");
        app.api_request(&own, Method::POST, &path, &json!({})).await
    };
    let (status, check) = post("event=rma.refunded").await;
    assert_eq!((status, &check["results"][0]["accepted"]), (200, &json!(true)), "{check}");
    let received = app.received().await;
    assert_eq!(received.len(), 1);
    assert_eq!(
        (&*received[0].event, &received[0].body["status"]),
        ("rma.refunded", &json!("REFUNDED"))
    );
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_messages").await, 0);
    let (_, other) = post("event=exchange_order.created").await;
    assert_eq!(other["results"][0]["outcome"], "not_set", "acme has no endpoint for it: {other}");
    assert_eq!(post("event=rma.lost").await.0, 400);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_says_which_part_of_a_request_was_refused() {
    let app = TestApp::with_api(&[]).await;
    let check = async || {
        let path = "/v1/endpoints/acme/check";
        let (_, mut check) = app.operator_request(Method::POST, path, &json!({})).await;
        check["results"][0].take()
    };
    // The endpoint has no credentials, so the signature is what it can refuse with 401. Some receivers
    // respond to a wrong signature with 400.
    let wrong = json!({"message": "the signature is invalid or too old"});
    app.behave(json!([
        {"do": "respond", "status": 401, "times": 1},
        {"do": "respond", "status": 400, "body": wrong, "times": 1},
    ]))
    .await;
    for status in [401, 400] {
        let result = check().await;
        assert_eq!((&result["status"], &result["refused"]), (&json!(status), &json!("signature")));
        let detail = format!("responded with {status}: the signature was refused");
        assert_eq!(result["detail"], json!(detail));
        let remedy = result["remedy"].as_str().unwrap();
        assert!(
            remedy.starts_with("the endpoint refused the signature: it must verify"),
            "{remedy}"
        );
    }
    let accepted = check().await;
    assert_eq!((&accepted["refused"], &accepted["remedy"]), (&Value::Null, &Value::Null));
    app.stop().await;
}
