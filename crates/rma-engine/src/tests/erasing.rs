//! Tests of the erasure of a shopper's data.

use diesel::sql_types::Text;
use diesel_async::SimpleAsyncConnection as _;
use domain::erasure::{EmailDigest, ErasureConfirmed, ReturnsErased, ShopperErased};
use uuid::Uuid;

use super::*;

mod overtaken_events;

fn planted(order: &str) -> Order {
    let mut order = bodies_order(order);
    order.customer.email = Some("planted@mail.example".to_owned());
    order.customer.first_name = Some("PLANTED".to_owned());
    order.shipping_address.name = "PLANTED".to_owned();
    order.billing_address.street1 = "PLANTED 1".to_owned();
    order.note = Some("PLANTED".to_owned());
    order
}

fn bodies_order(order: &str) -> Order {
    projecting::order(order, 2)
}

pub(super) fn erased(orders: &[&str], force: bool) -> ShopperErased {
    ShopperErased {
        erasure_id: Uuid::now_v7(),
        batch: 1,
        merchant: "acme".parse().unwrap(),
        order_identifiers: orders.iter().map(|&order| order.to_owned()).collect(),
        email_sha256: Some(EmailDigest::of("planted@mail.example")),
        force,
        force_before: None,
    }
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// The rows of all tables in which a marker remains.
async fn marked(app: &TestApp) -> Vec<String> {
    let mut conn = app.pool.get().await.unwrap();
    let tables = "SELECT quote_ident(table_name) AS line FROM information_schema.tables \
                  WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
    let tables: Vec<Line> = diesel::sql_query(tables).load(&mut conn).await.unwrap();
    let mut found = Vec::new();
    for Line { line: table } in tables {
        let rows = format!(
            "SELECT '{table}: ' || text AS line FROM ( \
                 SELECT row_to_json(own)::text || coalesce( \
                     convert_from((to_jsonb(own) ->> 'body')::bytea, 'UTF8'), '') AS text \
                 FROM {table} AS own \
             ) AS rows WHERE text ILIKE '%planted%'"
        );
        let rows: Vec<Line> = diesel::sql_query(rows).load(&mut conn).await.unwrap();
        found.extend(rows.into_iter().map(|row| row.line));
    }
    found
}

/// The first event that a queue has and that is wanted. The broker drops an event that was read often.
async fn event<E: Event>(app: &TestApp, service: &str, is_wanted: impl Fn(&E) -> bool) -> E {
    let queue = format!("{service}.{}", E::TYPE);
    eventually("the event is published", SOON, || async {
        let found = app.service.namespace.peek(&queue).await;
        let data = |message: &Value| -> E {
            let event: Value = serde_json::from_str(message["payload"].as_str().unwrap()).unwrap();
            serde_json::from_value(event["data"].clone()).unwrap()
        };
        found.iter().map(data).find(|event| is_wanted(event))
    })
    .await
}

#[tokio::test]
async fn an_open_return_is_kept_unless_forced() {
    let app = TestApp::with_settings(&[], |acme| acme.settings.appearance.withdrawal = true).await;
    app.store("acme", &planted("A")).await;
    let mut body = refund_of("A", &[1]);
    body["units"][0]["return_reason"] = json!("withdrawal");
    body["units"][0]["comment"] = json!("PLANTED");
    body["withdrawal"] = json!({ "name": "PLANTED", "email": "planted@other.example" });
    let rma = app.start_return(&body).await;
    let label = json!({
        "event_identifier": "1", "event": "label", "rma_identifier": rma, "tracking_number": "1Z9",
        "label_url": "https://carrier.example/PLANTED", "detail": "PLANTED",
    });
    assert_eq!(app.carrier(&label).await.0, StatusCode::OK);
    app.publish_event_at(erased(&["A"], false), Some(1000)).await;
    let confirmed: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    assert_eq!(confirmed.kept_returns.len(), 1);
    assert_eq!(confirmed.kept_returns[0].rma_identifier, rma);
    assert!(!marked(&app).await.is_empty(), "the data is still there");

    app.publish_event_at(erased(&["A"], true), Some(1001)).await;
    let forced = |it: &ErasureConfirmed| it.kept_returns.is_empty();
    let confirmed = event(&app, "order-intake", forced).await;
    assert_eq!((confirmed.kept_returns.len(), confirmed.counts.records), (0, 2));
    let erased_returns = |it: &ReturnsErased| !it.rma_identifiers.is_empty();
    let followed = event(&app, "exchange", erased_returns).await;
    assert_eq!(
        (followed.order_identifiers, followed.rma_identifiers),
        (vec!["A".to_owned()], vec![rma])
    );
    assert_eq!(marked(&app).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_giftee_is_found_by_the_digest_of_the_address() {
    let app = TestApp::alone().await;
    app.store("acme", &bodies_order("B")).await;
    let mut body = refund_of("B", &[1]);
    body["gift_refund_only"] = json!(true);
    body["giftee_email"] = json!("Planted@mail.example");
    body["units"] = json!([choice("B", 1, &json!({ "resolution": "refund" }))]);
    let rma = app.start_return(&body).await;
    app.publish_event_at(erased(&[], true), Some(1000)).await;
    let followed: ReturnsErased = event(&app, "exchange", |_| true).await;
    assert_eq!(followed.gift_rma_identifiers, std::slice::from_ref(&rma));
    assert_eq!(app.show(&rma).await["giftee_email"], "erased@invalid");
    assert_eq!(marked(&app).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_late_erasure_keeps_a_newer_return_of_a_giftee() {
    let app = TestApp::alone().await;
    app.store("acme", &bodies_order("B")).await;
    let mut body = refund_of("B", &[1]);
    body["gift_refund_only"] = json!(true);
    body["giftee_email"] = json!("planted@mail.example");
    let rma = app.start_return(&body).await;
    let an_hour_ago = Clock::system().now() - chrono::TimeDelta::hours(1);
    let event_of_then = erased(&[], true);
    let mut envelope = Envelope::new("order-intake", an_hour_ago, &event_of_then);
    envelope.sequence = Some(1000);
    app.service.publish_envelope(&envelope).await;
    let confirmed: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    assert_eq!((confirmed.counts.records, confirmed.kept_returns.len()), (0, 0));
    assert_eq!(app.show(&rma).await["giftee_email"], "planted@mail.example");
}

#[tokio::test]
async fn the_person_who_withdrew_is_found_by_the_address_of_the_withdrawal() {
    let app = TestApp::with_settings(&[], |acme| acme.settings.appearance.withdrawal = true).await;
    app.store("acme", &bodies_order("B")).await;
    let mut body = refund_of("B", &[1]);
    let withdrawn = json!({ "resolution": "refund", "return_reason": "withdrawal" });
    body["units"] = json!([choice("B", 1, &withdrawn)]);
    body["withdrawal"] = json!({ "name": "Planted", "email": "Planted@mail.example" });
    let rma = app.start_return(&body).await;
    let (_, found) = app.get("/v1/returns?email=planted@mail.example", "acme").await;
    assert_eq!(found["returns"][0]["rma_identifier"], json!(rma));
    app.publish_event_at(erased(&[], false), Some(1000)).await;
    let kept: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    assert_eq!(kept.kept_returns.len(), 1);
    app.publish_event_at(erased(&[], true), Some(1001)).await;
    let _: ReturnsErased =
        event(&app, "exchange", |it: &ReturnsErased| !it.gift_rma_identifiers.is_empty()).await;
    let person = json!({ "name": "erased", "email": "erased@invalid" });
    assert_eq!(app.show(&rma).await["withdrawal"], person);
    assert_eq!(marked(&app).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_responses_of_a_return_are_found_among_all_keys_of_a_merchant() {
    let database = testkit::Database::create(App::migrations()).await;
    let rows = testkit::fill_rows();
    let fill = format!(
        "INSERT INTO idempotency_keys (merchant, operation, key, request_digest, response, completed_at) \
         SELECT 'acme', CASE WHEN n % 5 = 0 THEN 'returns' ELSE 'carrier_events' END, n, '', \
             '{{\"rma_identifier\":\"R-' || n || '\",\"note\":\"PLANTED\"}}', now() \
         FROM generate_series(1, {rows}) AS n"
    );
    database.execute_raw(&fill).await;
    database.execute_raw("VACUUM ANALYZE idempotency_keys").await;
    let pool = database.pool();
    let mut conn = pool.get().await.unwrap();
    let merchant = "acme".parse().unwrap();
    let names: Vec<_> = (1..=100).map(|number| format!("R-{number}")).collect();
    let (erased, read) = testkit::reads(&mut conn, async |conn| {
        platform::idempotency::erase_responses(conn, &merchant, &names, domain::erasure::erase)
            .await
            .unwrap();
        let left = "SELECT count(*) AS n FROM idempotency_keys WHERE merchant = 'acme' \
                    AND rma_identifier = ANY (ARRAY['R-5', 'R-100']) AND response LIKE '%PLANTED%'";
        testkit::count(conn, left).await
    })
    .await;
    assert_eq!(erased, 0, "the responses are erased");
    assert!(read.rows < 500, "{read:?}");
}

#[tokio::test]
async fn a_late_erasure_keeps_newer_notes_of_discrepancies() {
    let app = TestApp::alone().await;
    app.store("acme", &bodies_order("A")).await;
    // Two of an order, of which one was resolved after the erasure, and one of a newer return of the order.
    let insert = "INSERT INTO discrepancies (merchant, at, kind, order_identifier, rma_identifier, detail, \
                      resolved_at, resolved_by, resolution_note) \
                  SELECT 'acme', now() + at * interval '1 hour', 'received_over', 'A', rma, \
                      '{\"note\": \"PLANTED\"}', now() + resolved * interval '1 hour', 'jo', 'PLANTED' \
                  FROM (VALUES (-2, NULL, -1), (-1, NULL, 1), (1, 'R-new', 2)) AS v (at, rma, resolved)";
    let mut conn = app.pool.get().await.unwrap();
    conn.batch_execute(insert).await.unwrap();
    app.publish_event_at(erased(&["A"], true), Some(1000)).await;
    let _: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    let stored =
        "SELECT detail ->> 'note' || '/' || resolution_note AS line FROM discrepancies ORDER BY at";
    let stored: Vec<Line> = diesel::sql_query(stored).load(&mut conn).await.unwrap();
    let stored: Vec<_> = stored.iter().map(|it| it.line.as_str()).collect();
    assert_eq!(stored, ["erased/erased", "erased/PLANTED", "PLANTED/PLANTED"]);
}

#[tokio::test]
async fn an_erasure_deletes_failed_look_ups_of_its_orders() {
    let app = TestApp::alone().await;
    app.store("acme", &bodies_order("A")).await;
    let insert = "INSERT INTO lookup_failures (at, merchant, order_digest, address) \
                  SELECT now() + minutes * interval '1 minute', 'acme', sha256(name::bytea), '192.0.2.0/24' \
                  FROM (VALUES (-5, 'a'), (5, 'a'), (-5, 'b')) AS v (minutes, name)";
    app.pool.get().await.unwrap().batch_execute(insert).await.unwrap();
    app.publish_event_at(erased(&["A"], true), Some(1000)).await;
    let _: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    let left =
        "SELECT count(*) AS n FROM lookup_failures WHERE at > now() OR order_digest = sha256('b')";
    assert_eq!(app.number(left).await, 2);
    assert_eq!(app.number("SELECT count(*) AS n FROM lookup_failures").await, 2);
}
