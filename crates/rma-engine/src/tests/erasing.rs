//! Tests of the erasure of a shopper's data.

use diesel::sql_types::Text;
use diesel_async::SimpleAsyncConnection as _;
use domain::access::MerchantId;
use domain::erasure::{EmailDigest, ErasureConfirmed, ReturnsErased, ShopperErased};
use domain::warehouse::UnitReceived;
use messaging::Outbox;
use uuid::Uuid;

use super::*;
use crate::erasing;

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

fn erased(orders: &[&str], force: bool) -> ShopperErased {
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
async fn a_snapshot_that_the_erasure_overtook_is_erased() {
    let app = TestApp::alone().await;
    app.publish_event_at(erased(&["A"], false), Some(1000)).await;
    let _: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    let merchant = "acme".parse().unwrap();
    let order = planted("A");
    let stored = OrderStored { merchant, order: order.clone(), is_reset: false };
    app.publish_event_at(stored, Some(999)).await;
    app.projected("acme", &order).await;
    assert_eq!(marked(&app).await, Vec::<String>::new());
}

/// Starts an erasure in a transaction that stays open.
async fn hold(
    app: &TestApp,
    event: &ShopperErased,
    sequence: i64,
) -> platform::database::Connection {
    let mut conn = app.pool.get().await.unwrap();
    conn.batch_execute("BEGIN").await.unwrap();
    let now = Clock::system().now();
    let mut envelope = json!(Envelope::new("order-intake", now, event));
    envelope["sequence"] = json!(format!("{sequence:019}"));
    let envelope: Envelope<ShopperErased> = serde_json::from_value(envelope).unwrap();
    let outbox = Outbox::new(App::NAME);
    erasing::erase_shopper(&mut conn, &outbox, &envelope, now).await.unwrap();
    conn
}

/// Publishes a snapshot while an erasure with a later sequence number has not committed, and checks that the
/// snapshot is erased.
async fn check_projection_during_erasure(app: &TestApp, order: &Order) {
    let mut erasure = hold(app, &erased(&["A"], false), 1000).await;
    let merchant = "acme".parse().unwrap();
    app.publish_event_at(
        OrderStored { merchant, order: order.clone(), is_reset: false },
        Some(999),
    )
    .await;
    let waits_or_done = format!(
        "SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                 AND wait_event_type = 'Lock') \
             + (SELECT count(*) FROM orders WHERE updated_at = '{}') AS n",
        order.updated_at
    );
    eventually("the projection waits, or is done", SOON, || async {
        (app.number(&waits_or_done).await > 0).then_some(())
    })
    .await;
    erasure.batch_execute("COMMIT").await.unwrap();
    drop(erasure);
    app.projected("acme", order).await;
    assert_eq!(marked(app).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_snapshot_that_waits_for_the_erasure_of_its_order_is_erased() {
    let app = TestApp::alone().await;
    app.store("acme", &planted("A")).await;
    let mut newer = planted("A");
    newer.updated_at += chrono::TimeDelta::seconds(1);
    check_projection_during_erasure(&app, &newer).await;
}

#[tokio::test]
async fn a_first_snapshot_that_waits_for_the_erasure_of_its_order_is_erased() {
    let app = TestApp::alone().await;
    check_projection_during_erasure(&app, &planted("A")).await;
}

#[tokio::test]
async fn a_late_erasure_keeps_newer_snapshots_and_the_returns_of_them() {
    let app = TestApp::alone().await;
    let merchant: MerchantId = "acme".parse().unwrap();
    let older = planted("A");
    let mut newer = planted("A");
    newer.updated_at += chrono::TimeDelta::seconds(1);
    let mut returns = Vec::new();
    for (unit, sequence, order) in [(1, 998, older), (2, 1001, newer)] {
        let merchant = merchant.clone();
        let stored = OrderStored { merchant, order: order.clone(), is_reset: false };
        app.publish_event_at(stored, Some(sequence)).await;
        app.projected("acme", &order).await;
        returns.push(app.start_return(&refund_of("A", &[unit])).await);
    }
    app.publish_event_at(erased(&["A"], true), Some(1000)).await;
    let followed: ReturnsErased = event(&app, "exchange", |_| true).await;
    assert_eq!(followed.rma_identifiers, returns[..1]);
    assert_eq!(followed.order_identifiers, ["A"], "the warehouse has older reports");
    let kept = "SELECT count(*) AS n FROM orders WHERE document LIKE '%PLANTED%'";
    assert_eq!(app.number(kept).await, 1, "the newer snapshot stays");
    let of_shopper = |rma: &str| {
        format!(
            "SELECT count(*) AS n FROM returns WHERE rma_identifier = '{rma}' \
             AND customer_email = 'planted@mail.example'"
        )
    };
    assert_eq!(app.number(&of_shopper(&returns[0])).await, 0);
    assert_eq!(app.number(&of_shopper(&returns[1])).await, 1);
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

/// Restarts the service, which then searches its dead letters, and waits until a queue has this many. Returns them.
async fn left_after_restart(app: TestApp, queue: &str, number: usize) -> Vec<String> {
    let (database, namespace) = app.service.stop().await;
    let settings = [
        ("SEALING__KEYS", testkit::sealing_keys()),
        ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
    ];
    let settings: Vec<_> = app.issuer.settings().into_iter().chain(settings).collect();
    let service = TestService::on::<App>(&settings, Clock::system(), database, namespace).await;
    eventually("only some events are left", SOON, || async {
        let left = service.namespace.peek(queue).await;
        let text = |it: &Value| it["payload"].as_str().unwrap().to_owned();
        (left.len() == number).then(|| left.iter().map(text).collect())
    })
    .await
}

#[tokio::test]
async fn a_dead_lettered_snapshot_of_an_erased_order_is_removed() {
    let app = TestApp::alone().await;
    app.publish_event_at(erased(&["A"], false), Some(1000)).await;
    let _: ErasureConfirmed = event(&app, "order-intake", |_| true).await;
    let queue = format!("{}.{}.dead", App::NAME, OrderStored::TYPE);
    let merchant: MerchantId = "acme".parse().unwrap();
    for (order, sequence) in [("A", 999), ("A", 1001), ("B", 999)] {
        let stored =
            OrderStored { merchant: merchant.clone(), order: planted(order), is_reset: false };
        let mut envelope = Envelope::new("order-intake", Clock::system().now(), &stored);
        envelope.sequence = Some(sequence);
        app.service.namespace.publish_raw(&queue, &json!(envelope).to_string()).await;
    }
    let left = left_after_restart(app, &queue, 2).await;
    assert!(!left.iter().any(|it| it.contains("/A\"") && it.contains("0000000999")), "{left:?}");
}

/// A unit that the warehouse rejected this many minutes from now.
fn rejected(rma: &str, minutes: i64) -> UnitReceived {
    let received_at = Clock::system().now() + chrono::TimeDelta::minutes(minutes);
    let reject_reason = Some(format!("PLANTED {minutes}"));
    UnitReceived { reject_reason, received_at, ..receiving::received(rma, Uuid::new_v4()) }
}

/// A return that was erased.
async fn erased_return(app: &TestApp) -> String {
    app.store("acme", &bodies_order("A")).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.publish_event_at(erased(&["A"], true), Some(1000)).await;
    let _: ErasureConfirmed = event(app, "order-intake", |_| true).await;
    rma
}

#[tokio::test]
async fn a_receipt_that_the_erasure_overtook_is_erased() {
    let app = TestApp::alone().await;
    let rma = erased_return(&app).await;
    for (minutes, is_erased) in [(-10, true), (10, false)] {
        app.publish_event(rejected(&rma, minutes)).await;
        let recorded = format!(
            "SELECT count(*) AS n FROM timeline WHERE event = 'receipt' \
             AND (detail::text LIKE '%PLANTED {minutes}%') <> {is_erased}"
        );
        eventually("the receipt is recorded", SOON, || async {
            (app.number(&recorded).await == 1).then_some(())
        })
        .await;
        assert_eq!(marked(&app).await.is_empty(), is_erased);
    }
}

#[tokio::test]
async fn a_dead_lettered_receipt_of_an_erased_return_is_removed() {
    let app = TestApp::alone().await;
    let rma = erased_return(&app).await;
    let queue = format!("{}.{}.dead", App::NAME, UnitReceived::TYPE);
    let without_text = UnitReceived { reject_reason: None, ..rejected(&rma, -10) };
    for unit in [rejected(&rma, -10), rejected(&rma, 10), rejected("other", -10), without_text] {
        let envelope = Envelope::new("warehouse-notifier", Clock::system().now(), &unit);
        app.service.namespace.publish_raw(&queue, &json!(envelope).to_string()).await;
    }
    let left = left_after_restart(app, &queue, 3).await;
    assert!(!left.iter().any(|it| it.contains(&rma) && it.contains("PLANTED -10")), "{left:?}");
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
