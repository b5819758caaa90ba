//! Look-ups with each key, and failures that reveal nothing.

use std::time::Instant;

use diesel_async::SimpleAsyncConnection as _;

use super::*;
use crate::store::lookups::{self, Attempt, Limits};

fn by(key: &str, fact: &str) -> Value {
    json!({ "order_identifier": "A", key: fact })
}

#[tokio::test]
async fn each_key_leads_to_a_proof() {
    let app = start_with_order().await;
    let gift = json!({ "order_identifier": "A", "is_gift": true });
    let (_, gift) = app.post("/v1/deep_links", "acme", &gift).await;
    let (_, plain) = app.post("/v1/deep_links", "acme", &json!({ "order_identifier": "A" })).await;
    let token = |link: &Value| {
        let url = link["url"].as_str().unwrap();
        json!({ "deep_link": url.rsplit('/').next().unwrap() })
    };
    let code = gift["gift_code"].as_str().unwrap();
    for (body, is_gift) in [
        (by("email", EMAIL), false),
        (by("email", " ADA@Shop.Example "), false),
        (json!({ "order_identifier": " A ", "email": EMAIL }), false),
        (by("zip_code", "N1 9GU"), false),
        (by("zip_code", "n1-9gu"), false),
        (by("gift_code", code), true),
        (by("gift_code", &code.replace('-', "").to_lowercase()), true),
        (token(&gift), true),
        (token(&plain), false),
    ] {
        let (status, found) = look_up(&app, "192.0.2.1", &body).await;
        assert_eq!(status, StatusCode::OK, "{body}: {found}");
        assert_eq!((&found["order_identifier"], &found["is_gift"]), (&json!("A"), &json!(is_gift)));
        let expires_at: Timestamp = serde_json::from_value(found["expires_at"].clone()).unwrap();
        let left = expires_at - Clock::system().now();
        assert!((28..=30).contains(&left.num_minutes()), "{left}");
        let proof = found["proof"].as_str().unwrap();
        let (status, _) = get(&app, "/v1/orders/A/returnable", proof).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    assert_eq!(
        app.number("SELECT count(*) AS n FROM lookup_failures WHERE merchant = 'acme'").await,
        0
    );
}

#[tokio::test]
async fn all_failures_have_one_response_and_take_as_long() {
    let latency = [PORTAL[0], ("LOOKUPS__MIN_FAILURE_LATENCY", "300ms")];
    let app = TestApp::with_settings(&latency, |_| {}).await;
    app.store("acme", &adas_order("A", 1)).await;
    app.store("rival", &adas_order("R", 1)).await;
    let strange = proof_keys(Clock::system().now()).issue(&"acme".parse().unwrap(), "A", false);
    let mut bodies = Vec::new();
    for (number, body) in [
        by("email", "eve@shop.example"),
        by("zip_code", "99999"),
        by("zip_code", "- -"),
        by("gift_code", "AAAA-AAAA-AAAA"),
        json!({ "order_identifier": "B", "email": EMAIL }),
        json!({ "order_identifier": "B", "zip_code": "N1 9GU" }),
        json!({ "order_identifier": "R", "email": EMAIL }),
        json!({ "deep_link": "k1.nonsense" }),
        json!({ "deep_link": strange.unwrap().0 }),
    ]
    .iter()
    .enumerate()
    {
        let started = Instant::now();
        let (status, mut refusal) = look_up(&app, &format!("192.0.2.{number}"), body).await;
        assert!(started.elapsed() >= Duration::from_millis(300), "{body}");
        assert_eq!(status, StatusCode::NOT_FOUND, "{body}");
        assert!(refusal["request_id"].take().is_string());
        bodies.push(refusal.to_string());
        let recorded =
            app.number("SELECT count(*) AS n FROM lookup_failures WHERE merchant = 'acme'").await;
        assert_eq!(usize::try_from(recorded).unwrap(), number + 1, "{body}");
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
}

#[tokio::test]
async fn a_key_that_the_merchant_does_not_allow_fails_like_a_wrong_one() {
    let app = start(|acme| acme.settings.appearance.lookup_keys = vec![LookupKey::ZipCode]).await;
    app.store("acme", &adas_order("A", 1)).await;
    let refused = look_up(&app, "192.0.2.1", &by("email", EMAIL)).await;
    let wrong = look_up(&app, "192.0.2.1", &by("email", "eve@shop.example")).await;
    assert_eq!((refused.0, wrong.0), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND));
    assert_eq!(refused.1["message"], wrong.1["message"]);
    let (status, _) = look_up(&app, "192.0.2.1", &by("zip_code", "N19GU")).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn the_zip_code_of_the_billing_address_counts_without_another() {
    let app = start(|_| {}).await;
    let mut order = adas_order("A", 1);
    order.shipping_address.zip_code = None;
    app.store("acme", &order).await;
    let (status, _) = look_up(&app, "192.0.2.1", &by("zip_code", "99999")).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn a_malformed_body_is_a_validation_error() {
    let app = start(|_| {}).await;
    for (body, field) in [
        (json!({}), "$.order_identifier"),
        (json!({ "order_identifier": "A" }), "$.email"),
        (json!({ "order_identifier": "A", "email": EMAIL, "zip_code": "1" }), "$.zip_code"),
        (json!({ "order_identifier": "A", "deep_link": "x" }), "$.order_identifier"),
        (json!({ "order_identifier": "A", "phone": "1" }), "$.phone"),
        (json!({ "order_identifier": "A", "email": "" }), "$.email"),
    ] {
        let (status, refusal) = look_up(&app, "192.0.2.1", &body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}");
        let fields = refusal["errors"].as_array().unwrap();
        assert!(fields.iter().any(|it| it["field"] == field), "{body}: {refusal}");
    }
    assert_eq!(
        app.number("SELECT count(*) AS n FROM lookup_failures WHERE merchant = 'acme'").await,
        0
    );
}

/// Scans of and insertions into the tables in this transaction.
async fn work(conn: &mut AsyncPgConnection) -> i64 {
    let work = "SELECT sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins)::bigint AS n \
                FROM pg_stat_xact_user_tables WHERE relname IN ('orders', 'lookup_failures')";
    testkit::count(conn, work).await
}

/// Rows of the tables that were read in this transaction.
async fn rows_read(conn: &mut AsyncPgConnection) -> i64 {
    let read = "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint AS n \
                FROM pg_stat_xact_user_tables WHERE relname IN ('orders', 'lookup_failures')";
    testkit::count(conn, read).await
}

/// 20,000 failures of other orders and addresses, and 300 of order A-1 and of one address.
const FILL: &str = "INSERT INTO lookup_failures (at, merchant, order_digest, address) \
     SELECT now() - n * interval '1 second', 'acme', sha256(('B-' || n)::bytea), '10.0.' || n FROM generate_series(1, 20000) AS n; \
     INSERT INTO lookup_failures (at, merchant, order_digest, address) \
     SELECT now() - n * interval '1 second', 'acme', sha256('a-1'), '192.0.2.1' FROM generate_series(1, 300) AS n; \
     INSERT INTO orders SELECT 'acme', 'A-' || n, now(), 1, '{}', '{}', now() FROM generate_series(1, 5000) AS n; \
     ANALYZE lookup_failures; ANALYZE orders";

#[tokio::test]
async fn a_look_up_does_the_same_work_whether_the_order_exists_or_not() {
    let database = testkit::Database::create(App::migrations()).await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    conn.batch_execute(FILL).await.unwrap();
    let merchant = "acme".parse().unwrap();
    let at = Clock::system().now();
    let limits = Limits { since: at - chrono::TimeDelta::hours(1), of_order: 5, of_address: 20 };
    let mut done = Vec::new();
    for order in ["A-1", "A-2", "no such order"] {
        let order_identifier = Some(order);
        let attempt = Attempt { merchant: &merchant, order_identifier, address: "192.0.2.1", at };
        conn.batch_execute("BEGIN").await.unwrap();
        let work_before = work(&mut conn).await;
        let read_before = rows_read(&mut conn).await;
        let position = lookups::insert(&mut conn, &attempt).await.unwrap();
        // The documents are not orders, so an existing one is found and then not understood.
        let found = lookups::find(&mut conn, &attempt, position, &limits).await;
        assert_eq!(found.is_err(), order.starts_with('A'), "{order}");
        let read = rows_read(&mut conn).await - read_before;
        assert!(read <= 60, "{order} reads {read} rows");
        done.push(work(&mut conn).await - work_before);
        conn.batch_execute("ROLLBACK").await.unwrap();
    }
    done.dedup();
    assert_eq!(done.len(), 1, "{done:?}");
}

#[tokio::test]
async fn a_failed_look_up_does_not_store_what_the_shopper_wrote() {
    let app = start(|_| {}).await;
    let body = json!({ "order_identifier": "planted@mail.example", "email": EMAIL });
    assert_eq!(look_up(&app, "192.0.2.1", &body).await.0, StatusCode::NOT_FOUND);
    let stored = "SELECT count(*) AS n FROM lookup_failures AS own \
                  WHERE merchant = 'acme' AND row_to_json(own)::text LIKE '%planted%'";
    assert_eq!(
        app.number("SELECT count(*) AS n FROM lookup_failures WHERE merchant = 'acme'").await,
        1
    );
    assert_eq!(app.number(stored).await, 0);
}
