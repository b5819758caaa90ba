//! The HTTP API for operators and merchants.

use diesel_async::SimpleAsyncConnection as _;
use platform::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::{TIMEOUT, TestApp, execute, message, token};

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_are_listed_newest_first() {
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_dead(message(Some("rma:1"), "rma.created", 1)).await;
    app.append(&[message(Some("rma:2"), "rma.created", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let page = app.get("/v1/deliveries").await;
    let newest = page["deliveries"][0]["created_at"].as_str().unwrap();
    let from = app.get(&format!("/v1/deliveries?from={}", newest.replace('+', "%2B"))).await;
    assert_eq!(from["deliveries"][0], page["deliveries"][0], "{newest}");
    assert_eq!(from["deliveries"].as_array().unwrap().len(), 1, "{newest}");
    let first = app.get("/v1/deliveries?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = app.get(&format!("/v1/deliveries?limit=1&after={next}")).await;
    assert_eq!(second["deliveries"][0]["id"], json!(dead));
    let attempts = [&first, &second].map(|page| page["deliveries"][0]["attempt_count"].clone());
    assert_eq!(attempts, [json!(1), json!(6)], "of a settled delivery");
    let oldest = app.get("/v1/deliveries?limit=1&order=oldest").await;
    assert_eq!(oldest["deliveries"], second["deliveries"]);
    let next = oldest["next"].as_str().unwrap();
    let last = app.get(&format!("/v1/deliveries?limit=1&order=oldest&after={next}")).await;
    assert_eq!(last["deliveries"], first["deliveries"]);
    assert_eq!(last.get("next"), None);
    app.stop().await;
}

/// Filters that match only the dead delivery, and filters that match none.
async fn check_filters(app: &TestApp, dead: Uuid) {
    assert_eq!(app.get("/v1/deliveries").await["deliveries"].as_array().unwrap().len(), 2);
    let id = format!("text={dead}");
    for query in [
        "state=dead",
        "status=500",
        "outcome=rejected",
        "ordering_key=rma:1&merchant=acme&kind=rma",
        "text=1",
        "text=rma:1&merchant=acme",
        "event=rma.created&text=1",
        &id,
    ] {
        let page = app.get(&format!("/v1/deliveries?{query}")).await;
        assert_eq!(page["deliveries"].as_array().unwrap().len(), 1, "{query}: {page}");
        assert_eq!(page["deliveries"][0]["id"], json!(dead), "{query}");
    }
    for query in [
        "state=pending",
        "status=404",
        "outcome=timed_out",
        "merchant=other",
        "kind=outbound-asn",
        "text=3",
        "text=rma",
        "event=rma.refunded",
        "to=2020-01-01T00:00:00Z",
        "from=2100-01-01T00:00:00Z",
    ] {
        let page = app.get(&format!("/v1/deliveries?{query}")).await;
        assert_eq!(page["deliveries"], json!([]), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_delivery_is_found_replayed_and_its_dead_letter_purged() {
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_dead(message(Some("rma:1"), "rma.created", 1)).await;
    app.append(&[message(Some("rma:2"), "rma.created", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;

    check_filters(&app, dead).await;
    let shown = app.get(&format!("/v1/deliveries/{dead}")).await;
    assert_eq!((&shown["state"], &shown["body"]), (&json!("dead"), &json!("{\"number\":1}")));
    assert_eq!(shown["attempts"].as_array().unwrap().len(), 6);
    check_headers(&shown["attempts"][5], &dead.to_string());

    assert_eq!(app.namespace.peek("notify.rma.dead").await.len(), 1);
    let path = format!("/v1/deliveries/{dead}/replay");
    assert_eq!(app.operator_request(Method::POST, &path, &json!({})).await.0, 202);
    let recorded = format!(
        "SELECT count(*) AS n FROM delivery_replays WHERE requested_by = 'test-client' \
         AND filter = '{{\"delivery\": \"{dead}\", \"merchant\": \"acme\"}}' AND replayed = 1 AND finished_at IS NOT NULL"
    );
    assert_eq!(app.count(&recorded).await, 1);
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.get(&format!("/v1/deliveries/{dead}")).await["state"], "delivered");
    let ids: Vec<_> = app.received().await.into_iter().map(|arrival| arrival.id).collect();
    assert_eq!(ids.iter().filter(|id| **id == dead.to_string()).count(), 7);
    eventually("the dead letter is gone", TIMEOUT, async || {
        app.namespace.peek("notify.rma.dead").await.is_empty().then_some(())
    })
    .await;
    let report = app.get("/v1/reports/deliveries?merchant=acme").await;
    let counts: Vec<_> = report["counts"].as_array().unwrap().iter().collect();
    let attempts = |status: u16| {
        let matches = counts.iter().filter(|count| count["status"] == json!(status));
        matches.map(|count| count["attempts"].as_i64().unwrap()).sum::<i64>()
    };
    assert_eq!((attempts(500), attempts(200)), (6, 2));
    app.stop().await;
}

fn check_headers(attempt: &Value, id: &str) {
    let value = |list: &str, name: &str| {
        let mut headers = attempt[list].as_array().unwrap().iter();
        let header = headers.find(|header| header["name"] == name);
        header.unwrap_or_else(|| panic!("no {name}: {attempt}"))["value"].as_str().unwrap()
    };
    assert_eq!(value("request_headers", "webhook-id"), id);
    assert_eq!(value("request_headers", "x-service-event"), "rma.created");
    assert_eq!(value("request_headers", "content-length"), "12");
    assert!(value("request_headers", "webhook-signature").starts_with("v1,"));
    assert!(value("request_headers", "host").starts_with("127.0.0.1:"));
    assert_eq!(value("response_headers", "content-type"), "application/json");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_ready_delivery_has_a_next_attempt() {
    let app = TestApp::with_api(&[]).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = Clock::system().now();
    // One transaction appends and changes them, so that the dispatcher never sees them ready.
    let ids = conn
        .transaction(async |conn| {
            let ordering_keys = ["rma:1", "rma:1", "rma:2"];
            let batch =
                ordering_keys.map(|ordering_key| message(Some(ordering_key), "rma.created", 1));
            let ids = app.replica.deliveries.append(conn, now, &batch).await?;
            let change = format!(
                "UPDATE deliveries SET next_attempt_at = next_attempt_at + INTERVAL '1 hour', \
                 leased_until = CASE id WHEN '{0}' THEN now() + INTERVAL '1 hour' END, \
                 state = CASE id WHEN '{0}' THEN 'queued' WHEN '{1}' THEN 'blocked' \
                 ELSE 'ready' END",
                ids[0], ids[1]
            );
            conn.batch_execute(&change).await?;
            Ok::<_, platform::database::DatabaseError>(ids)
        })
        .await
        .unwrap();
    drop(conn);
    let mut times = Vec::new();
    for id in ids {
        times.push(app.get(&format!("/v1/deliveries/{id}")).await["next_attempt_at"].take());
    }
    assert!(times[0].is_null() && times[1].is_null(), "{times:?}");
    let ready: platform::Timestamp = times[2].as_str().unwrap().parse().unwrap();
    assert!(ready > now, "{times:?}");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_report_has_the_newest_counts() {
    let app = TestApp::with_api(&[]).await;
    // One count an hour ago, and as many as a report can hold in the hour before.
    let counts = "INSERT INTO delivery_counts SELECT date_trunc('hour', now()) - INTERVAL '2 hours', \
         'acme-' || n, 'rma', 'delivered', 200, 1 FROM generate_series(1, 10000) AS n; \
         INSERT INTO delivery_counts SELECT date_trunc('hour', now()) - INTERVAL '1 hour', \
         'newest', 'rma', 'delivered', 200, 1";
    execute(&app.pool, counts).await;
    let report = app.get("/v1/reports/deliveries").await;
    let counts = report["counts"].as_array().unwrap();
    assert_eq!((counts.len(), &report["truncated"]), (10_000, &json!(true)));
    assert_eq!(counts.last().unwrap()["merchant"], "newest");
    let report = app.get("/v1/reports/deliveries?merchant=newest").await;
    assert_eq!(report["truncated"], false);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_reads_its_own_deliveries_and_replays_none() {
    let app = TestApp::with_api(&[]).await;
    let ids = app.append(&[message(None, "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let (own, other) = (token("returns", Some("acme")), token("returns", Some("other")));
    let show = format!("/v1/deliveries/{}", ids[0]);
    let replay = format!("{show}/replay");
    let none = json!({});
    assert_eq!(app.api_request(&own, Method::GET, &show, &none).await.0, 200);
    assert_eq!(app.api_request(&other, Method::GET, &show, &none).await.0, 404);
    assert_eq!(
        app.api_request(&own, Method::GET, "/v1/deliveries?merchant=other", &none).await.0,
        403
    );
    let (_, page) = app.api_request(&other, Method::GET, "/v1/deliveries", &none).await;
    assert_eq!(page["deliveries"], json!([]));
    assert_eq!(app.api_request(&own, Method::POST, &replay, &none).await.0, 403);
    let everything = json!({"filter": {}});
    assert_eq!(app.api_request(&own, Method::POST, "/v1/replays", &everything).await.0, 403);
    assert_eq!(app.api_request(&token("orders", None), Method::GET, &show, &none).await.0, 403);
    for scope in ["carrier", "warehouse"] {
        let token = token(scope, Some("acme"));
        for path in [show.as_str(), "/v1/deliveries", "/v1/reports/deliveries"] {
            assert_eq!(app.api_request(&token, Method::GET, path, &none).await.0, 403, "{path}");
        }
    }
    assert_eq!(app.api_request("rubbish", Method::GET, &show, &none).await.0, 401);
    let unknown = format!("/v1/deliveries/{}", Uuid::now_v7());
    assert_eq!(app.operator_request(Method::GET, &unknown, &none).await.0, 404);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_check_reports_the_outcome() {
    let app = TestApp::with_api(&[]).await;
    let path = "/v1/endpoints/acme/check";
    let (status, check) = app.operator_request(Method::POST, path, &json!({})).await;
    assert_eq!((status, &check["results"][0]["accepted"]), (200, &json!(true)), "{check}");
    let arrivals = app.received().await;
    assert_eq!((arrivals[0].event.as_str(), &arrivals[0].signature), ("sample", &json!("valid")));
    app.behave(json!([{"do": "redirect", "location": "/x", "times": 1}])).await;
    let (_, check) = app.operator_request(Method::POST, path, &json!({})).await;
    assert_eq!(check["results"][0]["outcome"], "redirected", "{check}");
    let results = check["results"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let kinds: Vec<_> =
        results.iter().map(|it| (text(&it["kind"]), text(&it["outcome"]))).collect();
    let expected =
        [("rma", "redirected"), ("exchange-order", "not_set"), ("exchange-variants", "delivered")];
    assert_eq!(kinds, expected.map(|(kind, outcome)| (kind.to_owned(), outcome.to_owned())));
    let requested = text(&results[2]["endpoint"]);
    assert!(requested.ends_with("/sku/SAMPLE-SKU/variants"), "{requested}");
    assert_eq!(results[2]["warnings"], json!([]), "{check}");
    let unknown = "/v1/endpoints/nobody/check";
    assert_eq!(app.operator_request(Method::POST, unknown, &json!({})).await.0, 404);
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_messages").await, 0);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_sees_who_sent_samples_to_its_endpoints() {
    let app = TestApp::with_api(&[]).await;
    for path in ["/v1/endpoints/acme/check", "/v1/endpoints/acme/check?event=rma.refunded"] {
        assert_eq!(app.operator_request(Method::POST, path, &json!({})).await.0, 200);
    }
    let list = async |merchant: &str| {
        let token = token("read", Some(merchant));
        app.api_request(&token, Method::GET, "/v1/sample_requests", &json!({})).await.1
    };
    let listed = list("acme").await;
    let listed = listed["sample_requests"].as_array().unwrap();
    let (refunded, all) = (&listed[0], &listed[1]);
    assert_eq!((&refunded["event"], &refunded["kinds"]), (&json!("rma.refunded"), &json!(["rma"])));
    assert_eq!(all["event"], "sample");
    assert_eq!(all["kinds"], json!(["rma", "exchange-order", "exchange-variants"]));
    assert!(all["requested_by"].is_string(), "{all}");
    assert_eq!(list("other").await["sample_requests"], json!([]));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_warns_of_variants_that_are_left_out() {
    let app = TestApp::with_api(&[]).await;
    let path = "/v1/endpoints/acme/check?kind=exchange-variants";
    let body = json!([{"sku": "S-1"}, {"sku": "S-2", "title": "b", "price": 4995}]);
    let steps = json!([{"do": "respond", "status": 200, "body": body}]);
    let rule = json!({"path": "/sku/SAMPLE-SKU/variants", "steps": steps});
    app.sandbox_request(Method::PUT, "/behaviour", &rule).await;
    let (_, check) = app.operator_request(Method::POST, path, &json!({})).await;
    let result = &check["results"][0];
    assert_eq!(result["accepted"], true, "{check}");
    let warnings = [
        "variant 1 (S-1) is left out: $.title: missing_field",
        "variant 2 (S-2): `price` is not a field; did you mean `unit_price_amount_cents`?",
    ];
    assert_eq!(result["warnings"], json!(warnings));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_of_one_kind_shows_the_request_and_the_response() {
    let app = TestApp::with_api(&[]).await;
    let path = "/v1/endpoints/acme/check?kind=rma";
    let (status, check) = app.operator_request(Method::POST, path, &json!({})).await;
    assert_eq!((status, check["results"].as_array().unwrap().len()), (200, 1), "{check}");
    let result = &check["results"][0];
    let sample: Value = serde_json::from_str(result["request_body"].as_str().unwrap()).unwrap();
    assert_eq!(sample["rma_identifier"], "SAMPLE-RMA");
    let header = |headers: &Value, name: &str| {
        let headers = headers.as_array().unwrap();
        headers.iter().find(|header| header["name"] == name).map(|header| header["value"].clone())
    };
    assert_eq!(header(&result["request_headers"], "x-service-event"), Some(json!("sample")));
    assert!(header(&result["request_headers"], "webhook-signature").is_some(), "{check}");
    assert!(header(&result["response_headers"], "content-length").is_some(), "{check}");
    let arrivals = app.received().await;
    assert_eq!(arrivals.len(), 1, "only the chosen endpoint gets a sample");
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_filters_are_rejected() {
    let app = TestApp::with_api(&[]).await;
    let none = json!({});
    for query in [
        "ordering_key=%00",
        "text=%00",
        "event=%00",
        "kind=%00",
        "kind=rmas",
        "merchant=%00",
        "from=-0001-01-01T00:00:00Z",
        "to=%2B10000-01-01T00:00:00Z",
        "from=%2B262142-01-01T00:00:00Z",
        "limit=0",
        "order=first",
        "limit=501",
    ] {
        let path = format!("/v1/deliveries?{query}");
        let (status, response) = app.operator_request(Method::GET, &path, &none).await;
        assert_eq!(status, 400, "{path}: {response}");
        assert!(response["message"].is_string(), "{path}: {response}");
    }
    for query in
        ["kind=%00", "kind=rmas", "to=-262143-01-01T00:00:00Z", "from=%2B99999-01-01T00:00:00Z"]
    {
        let path = format!("/v1/reports/deliveries?{query}");
        let (status, response) = app.operator_request(Method::GET, &path, &none).await;
        assert_eq!(status, 400, "{path}: {response}");
    }
    for filter in [
        json!({"ordering_key": "\0"}),
        json!({"kind": "\0"}),
        json!({"kind": "rmas"}),
        json!({"from": "+10000-01-01T00:00:00Z"}),
    ] {
        let request = json!({"filter": filter, "dry_run": true});
        let (status, response) = app.operator_request(Method::POST, "/v1/replays", &request).await;
        assert_eq!(status, 422, "{request}: {response}");
    }
    let (status, response) =
        app.operator_request(Method::GET, "/v1/deliveries?outcome=lost", &none).await;
    assert_eq!((status, &response["errors"][0]["field"]), (422, &json!("outcome")), "{response}");
    let detail = response["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("timed_out") && detail.contains("token_refused"), "{detail}");
    app.stop().await;
}
