//! Searching returns.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::projecting::order;
use super::*;

async fn found(app: &TestApp, query: &str) -> Vec<String> {
    let (status, response) = app.get(&format!("/v1/returns{query}"), "acme").await;
    assert_eq!(status, StatusCode::OK, "{query}: {response}");
    let returns = response["returns"].as_array().unwrap().iter();
    returns.map(|it| it["rma_identifier"].as_str().unwrap().to_owned()).collect()
}

/// The returns of all pages of a list.
async fn pages(app: &TestApp, query: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut after = String::new();
    loop {
        let (_, page) = app.get(&format!("/v1/returns?limit=2{query}{after}"), "acme").await;
        let returns = page["returns"].as_array().unwrap();
        seen.extend(returns.iter().map(|it| it["rma_identifier"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { return seen };
        after = format!("&after={next}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "one line for each filter")]
async fn returns_are_found_by_each_filter() {
    let app = TestApp::start().await;
    let mut rmas = Vec::new();
    for name in ["A", "B", "C"] {
        let mut order = order(name, 1);
        order.customer.email = Some(format!("{name}Ä@Shop.example"));
        app.store("acme", &order).await;
        rmas.insert(0, app.start_return(&refund_of(name, &[1])).await);
    }
    let [c, b, a] = [0, 1, 2].map(|index| vec![rmas[index].clone()]);
    let path = format!("/v1/returns/{}/cancel", c[0]);
    app.post(&path, "acme", &json!({})).await;
    let report = json!({
        "event_identifier": "1", "event": "label", "rma_identifier": b[0], "tracking_number": "1Z9",
    });
    app.carrier(&report).await;
    assert_eq!(found(&app, "").await, rmas);
    assert_eq!(found(&app, "?order_identifier=A").await, a);
    assert_eq!(found(&app, "?status=CANCELED").await, c);
    assert_eq!(found(&app, "?email=b%C3%84%40shop.EXAMPLE").await, b);
    assert_eq!(found(&app, "?tracking_number=1Z9").await, b);
    assert_eq!(found(&app, &format!("?rma_identifier_prefix={}", &b[0][..12])).await, b);
    assert_eq!(found(&app, "?rma_identifier_prefix=RMA-%25%25%25%25").await, Vec::<String>::new());
    let middle = app.show(&b[0]).await["created_at"].as_str().unwrap().to_owned();
    assert_eq!(found(&app, &format!("?from={middle}")).await, rmas[..2]);
    assert_eq!(found(&app, &format!("?to={middle}")).await, a);
    assert_eq!(found(&app, "?order_identifier=A&status=CANCELED").await, Vec::<String>::new());
    let (_, rival) = app.get("/v1/returns", "rival").await;
    assert_eq!(rival, json!({ "returns": [] }));

    assert_eq!(pages(&app, "").await, rmas);
    let oldest: Vec<_> = rmas.iter().rev().cloned().collect();
    assert_eq!(pages(&app, "&order=oldest").await, oldest);
    assert_eq!(pages(&app, &format!("&order=oldest&from={middle}")).await, oldest[1..]);
    assert_eq!(pages(&app, &format!("&order=oldest&to={middle}")).await, a);
    assert_eq!(found(&app, "?order=oldest&status=CANCELED").await, c);
    assert_eq!(found(&app, "?order=oldest&order_identifier=A").await, a);
    // Cursors of the years 16970 and -292277, and an invalid one.
    let cursors = ["473385600000000000 X", "-9223372036854775808 X", "9223372036854775807 X"];
    let cursors = cursors.map(|it| format!("after={}", URL_SAFE_NO_PAD.encode(it)));
    let queries = [
        "limit=0",
        "rma_identifier_prefix=RMA-ABC",
        "limit=201",
        "after=%21",
        "unknown=1",
        "order=first",
        "status=created",
        "email=%00",
        "from=%2B262142-01-01T00:00:00Z",
        "to=-0001-01-01T00:00:00Z",
        "to=%2B10000-01-01T00:00:00Z",
    ];
    for query in queries.into_iter().chain(cursors.iter().map(String::as_str)) {
        let (status, _) = app.get(&format!("/v1/returns?{query}"), "acme").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
    for name in ["none", "%00"] {
        for path in ["", "/timeline"].map(|end| format!("/v1/returns/{name}{end}")) {
            assert_eq!(app.get(&path, "acme").await.0, StatusCode::NOT_FOUND, "{path}");
        }
        let path = format!("/v1/returns/{name}/cancel");
        let (status, _) = app.post(&path, "acme", &json!({})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_customer_identifier_that_is_an_address_finds_returns() {
    let app = TestApp::start().await;
    for (name, identifier) in [("A", "Ada@shop.example"), ("B", "4711")] {
        let mut order = order(name, 1);
        order.customer.identifier = identifier.to_owned();
        order.customer.email = None;
        app.store("acme", &order).await;
    }
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.start_return(&refund_of("B", &[1])).await;
    assert_eq!(found(&app, "?email=ada%40SHOP.example").await, [rma]);
    assert!(found(&app, "?email=4711").await.is_empty());
}

#[tokio::test]
async fn a_return_of_several_orders_is_found_by_the_first_address() {
    let app = TestApp::start().await;
    for (name, email) in [("A", None), ("B", Some("Ada@shop.example"))] {
        let mut order = order(name, 1);
        order.customer.identifier = "4711".to_owned();
        order.customer.email = email.map(str::to_owned);
        app.store("acme", &order).await;
    }
    let mut both = refund_of("A", &[1]);
    both["units"].as_array_mut().unwrap().push(refund_of("B", &[1])["units"][0].clone());
    let rma = app.start_return(&both).await;
    assert_eq!(found(&app, "?email=ada%40shop.example").await, [rma]);
}

#[tokio::test]
async fn a_page_of_returns_ends_at_the_byte_limit() {
    let app = TestApp::start().await;
    let mut rmas = Vec::new();
    for name in ["A", "B", "C"] {
        app.store("acme", &order(name, 1)).await;
        rmas.insert(0, app.start_return(&refund_of(name, &[1])).await);
    }
    app.change_rows(
        "UPDATE returns SET document = document || repeat(' ', 3 * 1024 * 1024) \
         WHERE merchant = 'acme'",
    )
    .await;
    let (_, first) = app.get("/v1/returns", "acme").await;
    let next = first["next"].as_str().unwrap();
    let (_, second) = app.get(&format!("/v1/returns?after={next}"), "acme").await;
    let names = |page: &Value| -> Vec<String> {
        let returns = page["returns"].as_array().unwrap().iter();
        returns.map(|it| it["rma_identifier"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names(&first), names(&second)), (rmas[..2].to_vec(), rmas[2..].to_vec()));
    assert_eq!(second.get("next"), None);
}

#[tokio::test]
async fn a_page_of_a_timeline_ends_at_the_byte_limit() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let notes = "INSERT INTO timeline (merchant, rma_identifier, at, actor, event, detail) \
                 SELECT merchant, rma_identifier, now(), 'test', 'long', \
                     jsonb_build_object('text', repeat('x', 3 * 1024 * 1024)) \
                 FROM returns, generate_series(1, 3) WHERE merchant = 'acme'";
    app.change_rows(notes).await;
    let path = format!("/v1/returns/{rma}/timeline");
    let (_, first) = app.get(&path, "acme").await;
    let (_, second) =
        app.get(&format!("{path}?after={}", first["next"].as_str().unwrap()), "acme").await;
    let length = |page: &Value| page["entries"].as_array().unwrap().len();
    assert_eq!((length(&first), length(&second)), (3, 1));
    assert_eq!(second.get("next"), None);
}

#[tokio::test]
async fn a_timeline_is_append_only() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let first = &timeline["entries"][0];
    assert_eq!((&first["event"], &first["actor"]), (&json!("rma.created"), &json!("client")));
    let foreign = app.get(&format!("/v1/returns/{rma}/timeline"), "rival").await.0;
    assert_eq!(foreign, StatusCode::NOT_FOUND);
    let mut conn = app.pool.get().await.unwrap();
    for rewriting in
        ["UPDATE timeline SET actor = 'me'", "DELETE FROM timeline", "TRUNCATE timeline"]
    {
        let refused = diesel::sql_query(rewriting).execute(&mut *conn).await;
        assert!(refused.unwrap_err().to_string().contains("append-only"), "{rewriting}");
    }
}
