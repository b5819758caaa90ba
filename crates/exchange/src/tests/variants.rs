//! What shoppers are offered, whatever the merchant does.

use std::time::{Duration, Instant};

use domain::merchant::{Authentication, Interface};
use expect_test::expect;
use futures_util::future::join_all;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::stage::{Stage, ask_at, ask_with_tokens};

#[tokio::test]
async fn variants_in_stock_are_offered() {
    let stage = Stage::start().await;
    let mut answer = stage.variants("TEE").await;
    answer["asked_at"].take();
    expect![[r#"
        {
          "asked_at": null,
          "available": true,
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
    .assert_eq(&format!("{answer:#}"));
    let seen = &stage.journal("/sku/TEE/variants").await[0];
    assert_eq!(seen.method, "GET");
    assert_eq!(seen.headers["x-service-api-version"], "1");
    assert_eq!(seen.headers["x-service-id"], "acme");
}

#[tokio::test]
async fn a_hundred_shoppers_of_one_product_cost_one_call() {
    let stage = Stage::start().await;
    let body = json!([{"sku": "TEE-S", "title": "Small"}]);
    let slowly = json!([{"do": "answer", "delay_ms": 300, "body": body, "times": "always"}]);
    stage.behave("/sku/TEE/variants", slowly).await;
    let answers = join_all((0..100).map(|_| stage.variants("TEE"))).await;
    assert!(answers.iter().all(|answer| answer["variants"][0]["sku"] == "TEE-S"));
    stage.variants("TEE").await;
    assert_eq!(stage.journal("/sku/TEE/variants").await.len(), 1);
    stage.variants("CAP").await;
    assert_eq!(stage.journal("/sku/CAP/variants").await.len(), 1);
}

#[tokio::test]
async fn an_answer_is_kept_for_a_moment_only() {
    let stage = Stage::with(&[("VARIANTS__KEEP", "200ms")]).await;
    stage.variants("TEE").await;
    testkit::eventually("the merchant is asked again", Duration::from_secs(5), async || {
        stage.variants("TEE").await;
        (stage.journal("/sku/TEE/variants").await.len() == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn long_answers_do_not_fill_the_memory() {
    let stage = Stage::with(&[("VARIANTS__KEPT_BYTES", "20000")]).await;
    let long = json!([{"sku": "S", "title": "x".repeat(1000), "note": "x".repeat(10_000)}]);
    stage
        .behave("/sku/long/variants", json!([{"do": "answer", "body": long, "times": "always"}]))
        .await;
    // Long before its time is over.
    testkit::eventually("it is not kept", Duration::from_secs(5), async || {
        assert_eq!(stage.variants("long").await["available"], true);
        (stage.journal("/sku/long/variants").await.len() > 1).then_some(())
    })
    .await;
    stage.variants("TEE").await;
    stage.variants("TEE").await;
    assert_eq!(stage.journal("/sku/TEE/variants").await.len(), 1);
}

#[tokio::test]
async fn a_hanging_merchant_costs_three_seconds_at_first_and_nothing_later() {
    let stage = Stage::start().await;
    stage.behave("/sku/*", json!([{"do": "hang", "times": "always"}])).await;
    let names: Vec<_> = (0..8).map(|number| format!("P{number}")).collect();
    let timed = async |name: &str| {
        let began = Instant::now();
        let answer = stage.variants(name).await;
        (began.elapsed(), answer)
    };
    for (took, answer) in join_all(names.iter().map(|name| timed(name))).await {
        assert!(took < Duration::from_millis(3500), "{took:?}");
        assert_eq!((&answer["available"], &answer["reason"]), (&json!(false), &json!("timed_out")));
    }
    let mut waits = Vec::new();
    for _ in 0..51 {
        let (took, answer) = timed("P1").await;
        assert_eq!(answer["reason"], "resting");
        waits.push(took);
    }
    waits.sort_unstable();
    assert!(waits[25] < Duration::from_millis(50), "{waits:?}");
    assert_eq!(stage.journal("/sku/P1/variants").await.len(), 1);
}

#[tokio::test]
async fn a_merchant_that_recovers_is_asked_again() {
    let stage = Stage::with(&[("VARIANTS__FAILURES", "2"), ("VARIANTS__PAUSE", "300ms")]).await;
    stage.behave("/sku/*", json!([{"do": "answer", "status": 503, "times": 2}])).await;
    for (product, reason) in [("A", "rejected"), ("B", "rejected"), ("C", "resting")] {
        assert_eq!(stage.variants(product).await["reason"], reason);
    }
    testkit::eventually("the rest is over", Duration::from_secs(5), async || {
        (stage.variants("C").await["available"] == true).then_some(())
    })
    .await;
    assert_eq!(stage.variants("D").await["available"], true);
}

#[tokio::test]
async fn products_that_are_gone_say_nothing_about_the_others() {
    let stage = Stage::with(&[("VARIANTS__FAILURES", "2")]).await;
    stage.behave("/sku/*", json!([{"do": "answer", "status": 410, "times": 3}])).await;
    for product in ["A", "B", "C"] {
        assert_eq!(stage.variants(product).await["reason"], "rejected");
    }
    assert_eq!(stage.variants("D").await["available"], true);
}

#[tokio::test]
async fn every_failure_has_its_reason() {
    let stage = Stage::with(&[("VARIANTS__FAILURES", "1000"), ("VARIANTS__BUDGET", "500ms")]).await;
    for (product, step, reason) in [
        ("a", json!({"do": "answer", "status": 404}), "not_found"),
        ("b", json!({"do": "answer", "status": 500}), "rejected"),
        ("c", json!({"do": "redirect", "location": "/sku/TEE/variants"}), "rejected"),
        ("d", json!({"do": "answer", "status": 401}), "unauthorized"),
        ("e", json!({"do": "reset"}), "unreachable"),
        ("f", json!({"do": "drip"}), "timed_out"),
        ("g", json!({"do": "huge", "bytes": 1_048_577}), "answer_too_large"),
        ("h", json!({"do": "answer", "body": {"items": []}}), "answer_invalid"),
        ("i", json!({"do": "answer", "body": [{"sku": 1}]}), "answer_invalid"),
    ] {
        stage.behave(&format!("/sku/{product}/variants"), json!([step])).await;
        let answer = stage.variants(product).await;
        assert_eq!((&answer["available"], &answer["reason"]), (&json!(false), &json!(reason)));
        assert_eq!(answer["variants"], json!([]));
        assert_eq!(stage.variants(product).await["available"], true, "a failure is not kept");
    }
    let (_, unset) = stage.get("/v1/variants/TEE", "rival").await;
    assert_eq!(unset["reason"], "not_configured");
    let metrics = stage.client.get(format!("{}/metrics", stage.started.url)).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    let counted = metrics
        .lines()
        .any(|line| line.starts_with("variant_answers") && line.contains("result=\"not_found\""));
    assert!(counted, "{metrics}");
}

#[tokio::test]
async fn a_paused_endpoint_is_not_asked() {
    let stage = Stage::of(&[], |acme| {
        ask_at(acme, Authentication::None);
        acme.endpoints.get_mut(&Interface::Variants).unwrap().paused = true;
    })
    .await;
    assert_eq!(stage.variants("TEE").await["reason"], "paused");
}

#[tokio::test]
async fn a_401_costs_one_new_token() {
    let stage = Stage::of(&[], ask_with_tokens).await;
    assert_eq!(stage.variants("A").await["available"], true);
    stage.behave("/sku/*", json!([{"do": "expire_token", "times": "always"}])).await;
    assert_eq!(stage.variants("B").await["available"], true);
    let issued = stage.ask(reqwest::Method::GET, "/tokens", &json!({})).await;
    assert_eq!(issued, json!({"issued": 2}));
    stage.behave("/sku/*", json!([{"do": "answer", "status": 401, "times": "always"}])).await;
    assert_eq!(stage.variants("C").await["reason"], "unauthorized");
    assert_eq!(stage.journal("/sku/C/variants").await.len(), 2);
}

#[tokio::test]
async fn hostile_identifiers_stay_in_their_segment_or_are_refused() {
    let merchant = RawMerchant::start();
    let at_merchant = Some(merchant.url.clone());
    let stage = Stage::of(&[], |acme| acme.settings.base_url = at_merchant).await;
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
        let answer = stage.variants(sent).await;
        assert_eq!(answer["available"], true, "{sent}");
        assert_eq!(merchant.last_line(), format!("GET /sku/{arrived}/variants HTTP/1.1"));
    }
    let long = "x".repeat(10 * 1024);
    for refused in ["%2e", "%2e%2e", "a%0D%0AHost:%20evil", "%00", "a%0A", &long] {
        let (status, answer) = stage.get(&format!("/v1/variants/{refused}"), "acme").await;
        assert!(
            matches!(status, StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND),
            "{refused} {answer}"
        );
    }
    assert_eq!(merchant.asked(), 9);
}

/// A merchant that shows the request line as it came over the wire.
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
                let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n[]";
                reader.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        });
        Self { url, lines }
    }

    fn last_line(&self) -> String {
        self.lines.lock().unwrap().last().unwrap().clone()
    }

    fn asked(&self) -> usize {
        self.lines.lock().unwrap().len()
    }
}

#[tokio::test]
async fn only_those_who_deal_with_returns_may_ask() {
    let stage = Stage::start().await;
    let path = "/v1/variants/TEE";
    let status = async |token: &str, merchant| stage.get_with(path, token, merchant).await.0;
    let token = |merchant: Option<&str>, scope: &str| stage.issuer.token(merchant, scope);
    assert_eq!(status(&token(Some("acme"), "orders"), None).await, StatusCode::FORBIDDEN);
    assert_eq!(status("nonsense", None).await, StatusCode::UNAUTHORIZED);
    let portal = token(None, "returns");
    assert_eq!(status(&portal, None).await, StatusCode::BAD_REQUEST);
    assert_eq!(status(&portal, Some("nobody")).await, StatusCode::NOT_FOUND);
    let (_, answer) = stage.get_with(path, &portal, Some("acme")).await;
    assert_eq!(answer["available"], Value::Bool(true));
    assert_eq!(status(&token(None, "operator"), Some("acme")).await, StatusCode::OK);
    assert_eq!(status(&token(Some("rival"), "returns"), Some("acme")).await, StatusCode::FORBIDDEN);
}
