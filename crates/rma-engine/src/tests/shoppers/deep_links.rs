//! Deep links and gift codes of merchants.

use chrono::TimeDelta;
use platform::shopper_proof::{LinkedOrder, ProvenOrder};
use uuid::Uuid;

use super::*;

#[tokio::test]
async fn a_merchant_links_to_its_own_orders() {
    let url = ("PORTAL__PUBLIC_URL", "https://portal.example/");
    let app = TestApp::with_settings(&[PORTAL[0], PORTAL[1], url], |_| {}).await;
    app.store("acme", &adas_order("A", 1)).await;
    let create = async |body: &Value| app.post("/v1/deep_links", "acme", body).await;
    let (status, link) = create(&json!({ "order_identifier": "A" })).await;
    assert_eq!(status, StatusCode::CREATED, "{link}");
    let url = link["url"].as_str().unwrap();
    assert!(url.starts_with("https://portal.example/acme/l/"), "{url}");
    assert!(link.get("gift_code").is_none());
    let expires_at: Timestamp = serde_json::from_value(link["expires_at"].clone()).unwrap();
    assert_eq!((expires_at - Clock::system().now()).num_days(), 89);

    let gift = json!({ "order_identifier": "A", "is_gift": true, "valid_days": 1 });
    let (first, second) = (create(&gift).await.1, create(&gift).await.1);
    assert_eq!(first["gift_code"], second["gift_code"]);
    assert_ne!(first["url"], second["url"]);
    assert_eq!(first["gift_code"].as_str().unwrap().len(), 14);

    let (status, refusal) = create(&json!({ "order_identifier": "B" })).await;
    assert_eq!(
        (status, &refusal["message"]),
        (StatusCode::NOT_FOUND, &json!("there is no order B"))
    );
    for body in [json!({}), json!({ "order_identifier": "A", "valid_days": 0 })] {
        assert_eq!(create(&body).await.0, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    }
}

#[tokio::test]
async fn only_the_merchant_and_operators_create_links() {
    let app = start_with_order().await;
    let body = json!({ "order_identifier": "A" });
    let of_acme = [("x-service-id", "acme")];
    for (merchant, scope, expected) in [
        (Some("acme"), "returns", StatusCode::CREATED),
        (None, "operator", StatusCode::CREATED),
        (Some("acme"), "read", StatusCode::FORBIDDEN),
        (None, "returns", StatusCode::FORBIDDEN),
        (Some("rival"), "returns", StatusCode::FORBIDDEN),
    ] {
        let token = app.issuer.token(merchant, scope);
        let (status, response) =
            app.send(Method::POST, "/v1/deep_links", &token, &of_acme, Some(&body)).await;
        assert_eq!(status, expected, "{merchant:?} {scope}: {response}");
    }
    assert_eq!(app.post("/v1/deep_links", "rival", &body).await.0, StatusCode::NOT_FOUND);
}

/// A new link of acme to the order A: its id, and the body of its look-up.
async fn link_of(app: &TestApp) -> (Uuid, Value) {
    let (status, link) =
        app.post("/v1/deep_links", "acme", &json!({ "order_identifier": "A" })).await;
    assert_eq!(status, StatusCode::CREATED, "{link}");
    let token = link["url"].as_str().unwrap().rsplit('/').next().unwrap();
    (link["id"].as_str().unwrap().parse().unwrap(), json!({ "deep_link": token }))
}

#[tokio::test]
async fn failures_of_others_do_not_lock_a_link() {
    let app = start_with_order().await;
    let (_, link) = link_of(&app).await;
    let wrong = json!({ "order_identifier": "A", "email": "eve@shop.example" });
    for _ in 1..=5 {
        assert_eq!(look_up(&app, "192.0.2.1", &wrong).await.0, StatusCode::NOT_FOUND);
    }
    assert_eq!(look_up(&app, "192.0.2.2", &wrong).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(look_up(&app, "192.0.2.2", &link).await.0, StatusCode::OK);
    // An address that guesses links waits, and a valid link opens from it too.
    for number in 6..=20 {
        let guess = json!({ "deep_link": format!("k1.{number}") });
        assert_eq!(look_up(&app, "192.0.2.1", &guess).await.0, StatusCode::NOT_FOUND, "{number}");
    }
    let guess = json!({ "deep_link": "k1.21" });
    assert_eq!(look_up(&app, "192.0.2.1", &guess).await.0, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(look_up(&app, "192.0.2.1", &link).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_link_works_at_its_merchant_until_it_expires() {
    let app = start_with_order().await;
    app.store("rival", &adas_order("A", 1)).await;
    let (id, body) = link_of(&app).await;
    assert_eq!(look_up(&app, "192.0.2.1", &body).await.0, StatusCode::OK);
    let now = Clock::system().now();
    let link = |merchant: &str, id: Uuid, days: i64| {
        let expires_at = now + TimeDelta::days(days);
        let order = ProvenOrder { order_identifier: "A".to_owned(), is_gift: false, expires_at };
        let link = LinkedOrder { id, order };
        let token =
            proof_keys(now).deep_link(&app.service.own(merchant).parse().unwrap(), &link).unwrap();
        json!({ "deep_link": token })
    };
    for (body, expected) in [
        (link("acme", id, 1), StatusCode::OK),
        (link("acme", id, -1), StatusCode::NOT_FOUND),
        (link("rival", id, 1), StatusCode::NOT_FOUND),
        (link("acme", Uuid::now_v7(), 1), StatusCode::NOT_FOUND),
    ] {
        assert_eq!(look_up(&app, "192.0.2.1", &body).await.0, expected);
    }
}

#[tokio::test]
async fn a_revoked_link_opens_nothing() {
    let app = start_with_order().await;
    let (first, body) = link_of(&app).await;
    let (second, other) = link_of(&app).await;
    let path = format!("/v1/deep_links/{first}/revoke");
    assert_eq!(app.post(&path, "rival", &json!({})).await.0, StatusCode::NOT_FOUND);
    let (status, revoked) = app.post(&path, "acme", &json!({})).await;
    assert_eq!((status, &revoked["id"]), (StatusCode::OK, &json!(first)), "{revoked}");
    // Revoking again changes nothing.
    assert_eq!(app.post(&path, "acme", &json!({})).await, (StatusCode::OK, revoked.clone()));
    assert_eq!(look_up(&app, "192.0.2.1", &body).await.0, StatusCode::NOT_FOUND);
    assert_eq!(look_up(&app, "192.0.2.1", &other).await.0, StatusCode::OK);

    let list = async |merchant: &str| {
        let path = "/v1/deep_links?order_identifier=A";
        let token = app.issuer.token(Some(merchant), "read");
        let (status, list) = app.send(Method::GET, path, &token, &[], None).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        list["deep_links"].as_array().unwrap().clone()
    };
    let links = list("acme").await;
    let ids: Vec<_> = links.iter().map(|link| &link["id"]).collect();
    assert_eq!(ids, [&json!(second), &json!(first)]);
    assert_eq!(links.get(1), Some(&revoked));
    assert!(links.iter().all(|link| link["created_by"].is_string() && link.get("url").is_none()));
    assert!(list("rival").await.is_empty());
}

#[tokio::test]
async fn an_order_is_found_with_other_capitals_and_a_hash_sign() {
    let app = start_with_order().await;
    app.store("acme", &adas_order("#b-7", 1)).await;
    for (typed, expected) in
        [("A", "A"), ("a", "A"), ("#A", "A"), (" #a ", "A"), ("#b-7", "#b-7"), ("B-7", "#b-7")]
    {
        let body = json!({ "order_identifier": typed, "email": EMAIL });
        let (status, found) = look_up(&app, "192.0.2.1", &body).await;
        assert_eq!(
            (status, &found["order_identifier"]),
            (StatusCode::OK, &json!(expected)),
            "{typed}"
        );
    }
}
