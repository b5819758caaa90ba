//! Tests of the appearance of portals: who may change it, and host names that only one merchant has.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{app::TestApp, merchants::published_version};

async fn start() -> TestApp {
    let app = TestApp::start().await;
    app.create_merchant("acme").await;
    app.create_merchant("rival").await;
    app
}

async fn patch(app: &TestApp, merchant: &str, appearance: Value) -> (StatusCode, Value) {
    let path = format!("/v1/merchants/{merchant}");
    app.call(Method::PATCH, &path, Some(json!({ "appearance": appearance }))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_appearance_is_stored_and_published() {
    let app = start().await;
    let (_, created) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(created["appearance"]["languages"], json!(["en"]));
    assert_eq!(created["appearance"]["lookup_keys"], json!(["email", "zip_code"]));
    let change = json!({"name": "Acme", "languages": ["de", "en"], "colors": {"primary": "#0b6e4f"},
        "reason_labels": {"TOO_SMALL": {"de": "Zu klein"}}, "host_names": ["returns.acme.example"]});
    let (status, changed) = patch(&app, "acme", change).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    let event = published_version(&app, &changed["version"]).await;
    for settings in [&changed, &event["settings"]] {
        let appearance = &settings["appearance"];
        assert_eq!(appearance["name"], "Acme");
        assert_eq!(appearance["colors"]["primary"], "#0b6e4f");
        assert_eq!(appearance["colors"]["text_on_primary"], "#ffffff");
        assert_eq!(appearance["reason_labels"]["TOO_SMALL"]["de"], "Zu klein");
        assert_eq!(appearance["host_names"], json!(["returns.acme.example"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn low_contrast_is_rejected_at_its_field_and_changes_nothing() {
    let app = start().await;
    let (_, before) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    // White text on green: the stored colour of the text counts.
    let change = json!({"name": "Acme", "colors": {"primary": "#0a5"}});
    let (status, body) = patch(&app, "acme", change).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
    assert_eq!(body["errors"][0]["field"], "$.appearance.colors.text_on_primary");
    let (_, after) = app.call(Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(after, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_name_belongs_to_one_merchant() {
    let app = start().await;
    let names = |names: &[&str]| json!({ "host_names": names });
    let (status, _) =
        patch(&app, "acme", names(&["shop.acme.example", "returns.acme.example"])).await;
    assert_eq!(status, StatusCode::OK);
    let (status, body) = patch(&app, "rival", names(&["rival.example", "SHOP.acme.example"])).await;
    assert_eq!(status, StatusCode::CONFLICT, "{body}");
    let message = "host name shop.acme.example is already used by the portal of another merchant";
    assert_eq!(body["message"], message);
    let new =
        json!({"identifier": "third", "name": "New", "appearance": names(&["shop.acme.example"])});
    let (status, body) = app.call(Method::POST, "/v1/merchants", Some(new)).await;
    assert_eq!((status, &body["message"]), (StatusCode::CONFLICT, &json!(message)));
    let (status, _) = app.call(Method::GET, "/v1/merchants/third", None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    // A merchant keeps its names when something else changes.
    let other = Some(json!({"return_window_days": 60}));
    app.call(Method::PATCH, "/v1/merchants/acme", other).await;
    assert_eq!(patch(&app, "rival", names(&["shop.acme.example"])).await.0, StatusCode::CONFLICT);
    // A name that a merchant gave up is free, also one of a rejected change.
    let (status, kept) =
        patch(&app, "acme", names(&["returns.acme.example", "rival.example"])).await;
    assert_eq!(status, StatusCode::OK, "{kept}");
    assert_eq!(patch(&app, "rival", names(&["shop.acme.example"])).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_merchants_gets_a_host_name_at_the_same_time() {
    let app = start().await;
    let claim = |merchant| patch(&app, merchant, json!({"host_names": ["shop.acme.example"]}));
    let ((one, _), (other, _)) = tokio::join!(claim("acme"), claim("rival"));
    let mut statuses = [one, other];
    statuses.sort();
    assert_eq!(statuses, [StatusCode::OK, StatusCode::CONFLICT]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_changes_its_own_appearance_and_mails_and_nothing_else() {
    let app = start().await;
    let (id, secret) = app.create_client(Some("acme"), &["manage"]).await;
    let token = app.token(&id, &secret).await;
    let change = async |merchant: &str, body: Value| {
        let path = format!("/v1/merchants/{merchant}");
        app.call_as(&token, Method::PATCH, &path, Some(body)).await.0
    };
    let appearance = json!({"appearance": {"name": "Acme"}});
    assert_eq!(change("acme", appearance.clone()).await, StatusCode::OK);
    assert_eq!(change("rival", appearance.clone()).await, StatusCode::NOT_FOUND);
    assert_eq!(change("nobody", appearance.clone()).await, StatusCode::NOT_FOUND);
    let mails = json!({"mails": {"reply_to": "returns@acme.example"}});
    assert_eq!(change("acme", mails).await, StatusCode::OK);
    let both = json!({"appearance": {"name": "Acme"}, "mails": {"events": {"received": false}}});
    assert_eq!(change("acme", both).await, StatusCode::OK);
    let (_, shown) = app.call_as(&token, Method::GET, "/v1/merchants/acme", None).await;
    assert_eq!(shown["mails"]["reply_to"], "returns@acme.example");
    assert_eq!(shown["mails"]["events"]["received"], false);
    assert_eq!(shown["mails"]["events"]["refunded"], true);
    let more = json!({"appearance": {"name": "Acme"}, "return_window_days": 365});
    assert_eq!(change("acme", more).await, StatusCode::FORBIDDEN);
    assert_eq!(change("acme", json!({})).await, StatusCode::FORBIDDEN);
    assert_eq!(change("acme", json!({"name": "Acme"})).await, StatusCode::FORBIDDEN);

    let (id, secret) = app.create_client(Some("acme"), &["read", "returns"]).await;
    let reader = app.token(&id, &secret).await;
    let path = "/v1/merchants/acme";
    let (status, _) = app.call_as(&reader, Method::PATCH, path, Some(appearance)).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}
