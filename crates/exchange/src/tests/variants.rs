//! Tests of variant lookups.

use std::time::{Duration, Instant};

use domain::merchant::{Authentication, Interface};
use expect_test::expect;
use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::app::{TestApp, add_oauth_variants_endpoint, add_variants_endpoint};

#[tokio::test]
async fn variants_in_stock_are_offered() {
    let app = TestApp::start().await;
    let mut response = app.variants("TEE").await;
    response["requested_at"].take();
    expect![[r#"
        {
          "available": true,
          "requested_at": null,
          "variant_identifier": "TEE",
          "variants": [
            {
              "attributes": [
                {
                  "name": "size",
                  "value": "S"
                }
              ],
              "quantity_in_stock": 4,
              "sku": "TEE-S",
              "title": "TEE, size S",
              "unit_price_amount_cents": 2500
            },
            {
              "attributes": [
                {
                  "name": "size",
                  "value": "M"
                }
              ],
              "quantity_in_stock": 9,
              "sku": "TEE-M",
              "title": "TEE, size M",
              "unit_price_amount_cents": 2500
            }
          ]
        }"#]]
    .assert_eq(&format!("{response:#}"));
    let seen = &app.journal("/sku/TEE/variants").await[0];
    assert_eq!(seen.method, "GET");
    assert_eq!(seen.headers["x-service-api-version"], "1");
    assert_eq!(seen.headers["x-service-id"], json!(app.service.own("acme")));
}

#[tokio::test]
async fn concurrent_lookups_share_one_request() {
    let app = TestApp::start().await;
    let body = json!([{"sku": "TEE-S", "title": "Small"}]);
    let slowly = json!([{"do": "respond", "delay_ms": 300, "body": body, "times": "always"}]);
    app.behave("/sku/TEE/variants", slowly).await;
    let responses = join_all((0..100).map(|_| app.variants("TEE"))).await;
    assert!(responses.iter().all(|response| response["variants"][0]["sku"] == "TEE-S"));
    app.variants("TEE").await;
    assert_eq!(app.journal("/sku/TEE/variants").await.len(), 1);
    app.variants("CAP").await;
    assert_eq!(app.journal("/sku/CAP/variants").await.len(), 1);
}

#[tokio::test]
async fn cached_variants_expire() {
    let app = TestApp::with_settings(&[("VARIANTS__CACHE_TTL", "200ms")]).await;
    app.variants("TEE").await;
    testkit::eventually(
        "the merchant gets another request",
        Duration::from_secs(300),
        async || {
            app.variants("TEE").await;
            (app.journal("/sku/TEE/variants").await.len() == 2).then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn the_cache_is_limited_in_bytes() {
    let app = TestApp::with_settings(&[("VARIANTS__CACHE_SIZE", "20000")]).await;
    let long = json!([{"sku": "S", "title": "x".repeat(1000), "note": "x".repeat(10_000)}]);
    app.behave("/sku/long/variants", json!([{"do": "respond", "body": long, "times": "always"}]))
        .await;
    // Long before the entry expires.
    testkit::eventually("the entry is evicted", Duration::from_secs(300), async || {
        assert_eq!(app.variants("long").await["available"], true);
        (app.journal("/sku/long/variants").await.len() > 1).then_some(())
    })
    .await;
    app.variants("TEE").await;
    app.variants("TEE").await;
    assert_eq!(app.journal("/sku/TEE/variants").await.len(), 1);
}

#[tokio::test]
async fn a_hanging_merchant_opens_the_breaker() {
    let app = TestApp::alone().await;
    app.behave("/sku/*", json!([{"do": "hang", "times": "always"}])).await;
    let names: Vec<_> = (0..8).map(|number| format!("P{number}")).collect();
    let timed = async |name: &str| {
        let began = Instant::now();
        let response = app.no_variants(name).await;
        (began.elapsed(), response)
    };
    for (took, response) in join_all(names.iter().map(|name| timed(name))).await {
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert_eq!(response, (503, json!("timed_out")));
    }
    let mut waits = Vec::new();
    for _ in 0..51 {
        let (took, response) = timed("P1").await;
        assert_eq!(response, (502, json!("unavailable")));
        waits.push(took);
    }
    waits.sort_unstable();
    assert!(waits[25] < Duration::from_millis(2500), "{waits:?}");
    assert_eq!(app.journal("/sku/P1/variants").await.len(), 1);
}

#[tokio::test]
async fn the_breaker_closes_when_the_merchant_recovers() {
    let app = TestApp::with_settings(&[
        ("VARIANTS__BREAKER_THRESHOLD", "2"),
        ("VARIANTS__BREAKER_OPEN_FOR", "300ms"),
    ])
    .await;
    app.behave("/sku/*", json!([{"do": "respond", "status": 503, "times": 2}])).await;
    let expected = [("A", 200, "rejected"), ("B", 200, "rejected"), ("C", 502, "unavailable")];
    for (product, status, reason) in expected {
        assert_eq!(app.no_variants(product).await, (status, json!(reason)));
    }
    testkit::eventually("the breaker closes", Duration::from_secs(300), async || {
        let (_, response) = app.get("/v1/variants/C", "acme").await;
        (response["available"] == true).then_some(())
    })
    .await;
    assert_eq!(app.variants("D").await["available"], true);
}

#[tokio::test]
async fn missing_products_do_not_open_the_breaker() {
    let app = TestApp::with_settings(&[("VARIANTS__BREAKER_THRESHOLD", "2")]).await;
    app.behave("/sku/*", json!([{"do": "respond", "status": 410, "times": 3}])).await;
    for product in ["A", "B", "C"] {
        assert_eq!(app.variants(product).await["reason"], "rejected");
    }
    assert_eq!(app.variants("D").await["available"], true);
}

#[tokio::test]
async fn every_failure_has_its_reason() {
    let app = TestApp::with_settings(&[
        ("VARIANTS__BREAKER_THRESHOLD", "1000"),
        ("VARIANTS__TIMEOUT", "500ms"),
    ])
    .await;
    for (product, step, reason) in [
        ("a", json!({"do": "respond", "status": 404}), "not_found"),
        ("b", json!({"do": "respond", "status": 500}), "rejected"),
        ("c", json!({"do": "redirect", "location": "/sku/TEE/variants"}), "rejected"),
        ("d", json!({"do": "respond", "status": 401}), "unauthorized"),
        // A request on a reused connection is repeated once.
        ("e", json!({"do": "reset", "times": 2}), "unreachable"),
        ("f", json!({"do": "drip"}), "timed_out"),
        ("g", json!({"do": "huge", "bytes": 1_048_577}), "response_too_large"),
        ("h", json!({"do": "respond", "body": {"items": []}}), "invalid_response"),
        ("i", json!({"do": "respond", "body": [{"sku": 1}]}), "invalid_response"),
    ] {
        app.behave(&format!("/sku/{product}/variants"), json!([step])).await;
        let status = match reason {
            "unreachable" => 502,
            "timed_out" => 503,
            _ => 200,
        };
        assert_eq!(app.no_variants(product).await, (status, json!(reason)));
        assert_eq!(app.variants(product).await["available"], true, "a failure is not cached");
    }
    let (_, unset) = app.get("/v1/variants/TEE", "rival").await;
    assert_eq!(unset["reason"], "not_configured");
    let metrics = app.client.get(format!("{}/metrics", app.service.url)).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let counted = metrics.lines().any(|line| {
        line.starts_with("backhaul_variant_lookups_total{") && line.contains("result=\"not_found\"")
    });
    assert!(counted, "{metrics}");
}

#[tokio::test]
async fn a_paused_endpoint_gets_no_request() {
    let app = TestApp::with_merchant(|acme| {
        add_variants_endpoint(acme, Authentication::None);
        acme.endpoints.get_mut(&Interface::Variants).unwrap().paused = true;
    })
    .await;
    assert_eq!(app.variants("TEE").await["reason"], "paused");
}

#[tokio::test]
async fn a_401_fetches_one_new_token() {
    let app = TestApp::with_merchant(add_oauth_variants_endpoint).await;
    assert_eq!(app.variants("A").await["available"], true);
    app.behave("/sku/*", json!([{"do": "expire_token", "times": "always"}])).await;
    assert_eq!(app.variants("B").await["available"], true);
    let issued = app.request_sandbox(reqwest::Method::GET, "/tokens", &json!({})).await;
    assert_eq!(issued, json!({"issued": 2}));
    app.behave("/sku/*", json!([{"do": "respond", "status": 401, "times": "always"}])).await;
    assert_eq!(app.variants("C").await["reason"], "unauthorized");
    assert_eq!(app.journal("/sku/C/variants").await.len(), 2);
}

#[tokio::test]
async fn hostile_identifiers_are_escaped_or_rejected() {
    let merchant = RawMerchant::start();
    let at_merchant = Some(merchant.url.clone());
    let app = TestApp::with_merchant(|acme| acme.settings.base_url = at_merchant).await;
    for (sent, arrived) in [
        ("..%2F..%2Fadmin", "..%2F..%2Fadmin"),
        ("%2e%2e%2fx", "..%2Fx"),
        ("a%2fb", "a%2Fb"),
        ("%252f", "%252f"),
        ("a%3Fb%3D1", "a%3Fb%3D1"),
        ("a%23b", "a%23b"),
        ("a%5Cb", "a%5Cb"),
        ("a%20b%2Bc", "a%20b%2Bc"),
        ("a;b=c", "a%3Bb%3Dc"),
    ] {
        let response = app.variants(sent).await;
        assert_eq!(response["available"], true, "{sent}");
        assert_eq!(merchant.last_line(), format!("GET /sku/{arrived}/variants HTTP/1.1"));
    }
    let long = "x".repeat(10 * 1024);
    for refused in ["%2e", "%2e%2e", "a%0D%0AHost:%20evil", "%00", "a%0A", &long] {
        let (status, response) = app.get(&format!("/v1/variants/{refused}"), "acme").await;
        assert!(
            matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND),
            "{refused} {response}"
        );
    }
    assert_eq!(merchant.request_count(), 9);
}

/// A merchant that records the raw request lines.
struct RawMerchant {
    url: String,
    lines: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl RawMerchant {
    fn start() -> Self {
        use std::io::{BufRead as _, BufReader, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let lines = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
        let seen = lines.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut reader = BufReader::new(stream);
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                seen.lock().unwrap().push(line.trim_end().to_owned());
                while reader.read_line(&mut line).unwrap() > 2 {}
                let response =
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n[]";
                reader.get_mut().write_all(response.as_bytes()).unwrap();
            }
        });
        Self { url, lines }
    }

    fn last_line(&self) -> String {
        self.lines.lock().unwrap().last().unwrap().clone()
    }

    fn request_count(&self) -> usize {
        self.lines.lock().unwrap().len()
    }
}

#[tokio::test]
async fn variants_require_the_returns_scope() {
    let app = TestApp::start().await;
    let path = "/v1/variants/TEE";
    let status = async |token: &str, merchant| app.get_with(path, token, merchant).await.0;
    let token = |merchant: Option<&str>, scope: &str| app.issuer.token(merchant, scope);
    assert_eq!(status(&token(Some("acme"), "orders"), None).await, StatusCode::FORBIDDEN);
    assert_eq!(status("nonsense", None).await, StatusCode::UNAUTHORIZED);
    let portal = token(None, "returns");
    assert_eq!(status(&portal, None).await, StatusCode::BAD_REQUEST);
    assert_eq!(status(&portal, Some("nobody")).await, StatusCode::NOT_FOUND);
    let (_, response) = app.get_with(path, &portal, Some("acme")).await;
    assert_eq!(response["available"], Value::Bool(true));
    assert_eq!(status(&token(None, "operator"), Some("acme")).await, StatusCode::OK);
    assert_eq!(status(&token(Some("rival"), "returns"), Some("acme")).await, StatusCode::FORBIDDEN);
}
