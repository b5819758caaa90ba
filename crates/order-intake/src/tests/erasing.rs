//! Tests of `/v1/erasures` and of the retention of personal data.

use std::sync::Arc;

use diesel_async::{RunQueryDsl as _, SimpleAsyncConnection as _};
use domain::erasure::{EmailDigest, ErasureConfirmed, ErasureCounts, KeptReturn, ShopperErased};
use domain::event::Event as _;
use messaging::Outbox;
use platform::{Clock, Service as _};
use uuid::Uuid;

use super::*;
use crate::eraser::{Eraser, Step};
use crate::store::{self, NewErasure, insert_erasure};

const SOON: Duration = Duration::from_secs(300);
const EMAIL: &str = "Planted@mail.example";

/// Orders of one shopper, with a marker in personal fields.
fn planted_orders(count: usize) -> Vec<Value> {
    let mut orders = sample_orders(count);
    for (number, order) in orders.iter_mut().enumerate() {
        order["identifier"] = json!(format!("P-{number}"));
        // One order has the address with spaces around it, as some merchants send it.
        let email = if number == 1 { format!(" {EMAIL} ") } else { EMAIL.to_owned() };
        order["customer"] = json!({ "identifier": "C-1", "email": email, "first_name": "PLANTED" });
        order["note"] = json!("ring at PLANTED");
        order["shipping_address"]["name"] = json!("PLANTED");
        order["billing_address"]["street1"] = json!("PLANTED 1");
        order["delivery_wish"] = json!("leave it with PLANTED");
        order["refunds"] = json!([]);
    }
    orders
}

async fn erase(app: &TestApp, token: &str, body: &Value) -> (StatusCode, Value) {
    let url = format!("{}/v1/erasures", app.service.url);
    let request = app.client.post(url).bearer_auth(token).header("x-service-id", "acme");
    read(request.json(body).send().await.unwrap()).await
}

async fn erased(app: &TestApp, body: &Value) -> Uuid {
    let token = app.issuer.token(None, "operator");
    let (status, erasure) = erase(app, &token, body).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{erasure}");
    erasure["id"].as_str().unwrap().parse().unwrap()
}

async fn show(app: &TestApp, id: Uuid) -> Value {
    let url = format!("{}/v1/erasures/{id}", app.service.url);
    let request = app.client.get(url).bearer_auth(app.issuer.token(Some("acme"), "manage"));
    read(request.send().await.unwrap()).await.1
}

async fn wait_for(app: &TestApp, id: Uuid, state: &str) -> Value {
    testkit::eventually("the erasure has the state", SOON, || async {
        let erasure = show(app, id).await;
        (erasure["state"] == state).then_some(erasure)
    })
    .await
}

/// The events for rma-engine.
async fn events(app: &TestApp, number: usize) -> Vec<ShopperErased> {
    let queue = format!("rma-engine.{}", ShopperErased::TYPE);
    let found = testkit::eventually("the events are published", SOON, || async {
        let found = app.service.namespace.peek(&queue).await;
        (found.len() == number).then_some(found)
    })
    .await;
    let event = |event: &Value| {
        let event: Value = serde_json::from_str(event["payload"].as_str().unwrap()).unwrap();
        serde_json::from_value(event["data"].clone()).unwrap()
    };
    found.iter().map(event).collect()
}

async fn confirm(app: &TestApp, id: Uuid, batch: i32, service: &str, kept: Vec<KeptReturn>) {
    let confirmed = ErasureConfirmed {
        erasure_id: id,
        batch,
        merchant: "acme".parse().unwrap(),
        service: service.to_owned(),
        counts: ErasureCounts { records: 2, events: 1, deliveries: 3 },
        kept_returns: kept,
    };
    app.service.publish(&confirmed).await;
}

#[derive(diesel::QueryableByName)]
struct Line {
    #[diesel(sql_type = diesel::sql_types::Text)]
    line: String,
}

/// Every row of every table as text.
async fn dump(app: &TestApp) -> String {
    let mut conn = app.service.database.pool().get().await.unwrap();
    let tables = "SELECT quote_ident(table_name) AS line FROM information_schema.tables \
                  WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
    let tables: Vec<Line> = diesel::sql_query(tables).load(&mut conn).await.unwrap();
    let mut all = String::new();
    for Line { line: table } in tables {
        let rows = format!("SELECT row_to_json(own)::text AS line FROM {table} AS own");
        let rows: Vec<Line> = diesel::sql_query(rows).load(&mut conn).await.unwrap();
        all.extend(rows.into_iter().map(|row| row.line + "\n"));
    }
    all
}

/// The lines of a dump in which a marker remains.
fn marked(dump: &str) -> Vec<&str> {
    dump.lines().filter(|line| line.to_uppercase().contains("PLANTED")).collect()
}

#[tokio::test]
async fn a_request_with_a_used_key_is_the_same_erasure() {
    let app = TestApp::alone().await;
    let token = app.issuer.token(Some("acme"), "manage");
    let request = async |key: &str, body: Value| {
        let url = format!("{}/v1/erasures", app.service.url);
        let request = app.client.post(url).bearer_auth(&token).header("idempotency-key", key);
        read(request.json(&body).send().await.unwrap()).await
    };
    let (status, first) = request("1", json!({ "email": EMAIL })).await;
    assert_eq!(status, StatusCode::ACCEPTED, "{first}");
    // The spelling of the address makes no difference.
    let other_spelling = json!({ "email": format!(" {} ", EMAIL.to_uppercase()) });
    assert_eq!(request("1", other_spelling).await, (status, first.clone()));
    let forced = json!({ "email": EMAIL, "force": true });
    assert_eq!(request("1", forced).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let (status, second) = request("2", json!({ "email": EMAIL })).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert_ne!(second["id"], first["id"]);
}

#[tokio::test]
async fn a_shopper_is_erased_in_orders_and_events() {
    let app = TestApp::alone().await;
    let orders = planted_orders(3);
    assert_eq!(app.publish("acme", &order_message(&orders)).await.0, StatusCode::OK);
    let kept_events =
        "SELECT count(*) AS n FROM published_events WHERE routing_key = 'order.stored.v1'";
    testkit::eventually("the events are kept", SOON, || async {
        (app.service.database.count(kept_events).await == 3).then_some(())
    })
    .await;
    assert!(!marked(&dump(&app).await).is_empty());

    let id = erased(&app, &json!({ "email": EMAIL.to_lowercase() })).await;
    let erasure = wait_for(&app, id, "waiting").await;
    assert_eq!(erasure["orders"], 3);
    assert_eq!((&erasure["erased_orders"], &erasure["erased_events"]), (&json!(3), &json!(3)));
    let dump = dump(&app).await;
    assert_eq!(marked(&dump), Vec::<&str>::new());
    let event = events(&app, 1).await.remove(0);
    assert_eq!(event.email_sha256, Some(EmailDigest::of(EMAIL)));
    assert_eq!((event.order_identifiers.len(), event.force, event.batch), (3, false, 1));

    let stored: Value = app.get("/v1/orders/P-0", "acme").await.json().await.unwrap();
    let document = &stored["document"];
    assert_eq!(document["customer"]["email"], "erased@invalid");
    assert_eq!(document["customer"]["identifier"], "C-1");
    assert_eq!(document["total_amount_cents"], orders[0]["total_amount_cents"]);

    // The same snapshot does not bring the data back; a new one does.
    let (_, response) = app.publish("acme", &order_message(&orders[..1])).await;
    assert_eq!(response["orders"][0]["result"], "unchanged", "{response}");
    let again = erased(&app, &json!({ "email": EMAIL })).await;
    assert_eq!(
        wait_for(&app, again, "waiting").await["orders"],
        3,
        "a repetition finds them again"
    );
}

#[tokio::test]
async fn an_erasure_is_finished_when_all_services_have_confirmed_all_batches() {
    let app = TestApp::alone().await;
    let names: Vec<_> = (0..250).map(|number| format!("N-{number:03}")).collect();
    let id = erased(&app, &json!({ "order_identifiers": names, "force": true })).await;
    wait_for(&app, id, "waiting").await;
    let events = events(&app, 3).await;
    let batches: Vec<_> = events.iter().map(|it| (it.batch, it.order_identifiers.len())).collect();
    assert_eq!(batches, [(1, 100), (2, 100), (3, 50)]);
    assert!(events.iter().all(|event| event.force && event.email_sha256.is_none()));

    let kept =
        KeptReturn { rma_identifier: "RMA-1".to_owned(), order_identifier: "N-001".to_owned() };
    for batch in 1..=3 {
        for service in ["rma-engine", "exchange"] {
            confirm(&app, id, batch, service, vec![kept.clone()]).await;
        }
        confirm(&app, id, batch, "rma-engine", Vec::new()).await;
    }
    confirm(&app, id, 1, "warehouse-notifier", Vec::new()).await;
    confirm(&app, id, 2, "warehouse-notifier", Vec::new()).await;
    testkit::eventually("eight confirmations are stored", SOON, || async {
        let stored = "SELECT count(*) AS n FROM erasure_confirmations";
        (app.service.database.count(stored).await == 8).then_some(())
    })
    .await;
    assert_eq!(show(&app, id).await["state"], "waiting");
    confirm(&app, id, 3, "warehouse-notifier", Vec::new()).await;
    let erasure = wait_for(&app, id, "finished").await;
    assert_eq!(erasure["confirmations"].as_array().unwrap().len(), 3);
    assert_eq!(erasure["confirmations"][0]["records"], 6, "{erasure}");
    assert_eq!(erasure["kept_returns"][0]["rma_identifier"], "RMA-1");
}

#[tokio::test]
async fn only_operators_and_the_merchant_itself_can_erase() {
    let app = TestApp::alone().await;
    app.publish("acme", &order_message(&planted_orders(1))).await;
    let body = json!({ "email": EMAIL, "dry_run": true });
    for scope in ["orders", "read", "returns"] {
        let token = app.issuer.token(Some("acme"), scope);
        assert_eq!(erase(&app, &token, &body).await.0, StatusCode::FORBIDDEN, "{scope}");
    }
    let own = app.issuer.token(Some("acme"), "manage");
    let (status, found) = erase(&app, &own, &body).await;
    assert_eq!((status, &found["order_identifiers"]), (StatusCode::OK, &json!(["P-0"])));
    assert!(!marked(&dump(&app).await).is_empty(), "a dry run erases nothing");
    let other = json!({ "email": EMAIL, "order_identifiers": ["X"] });
    assert_eq!(erase(&app, &own, &other).await.0, StatusCode::NOT_FOUND);
    assert_eq!(erase(&app, &own, &json!({})).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    let id = erased(&app, &json!({ "email": EMAIL })).await;
    let url = format!("{}/v1/erasures/{id}", app.service.url);
    let rival = app.client.get(url).bearer_auth(app.issuer.token(Some("rival"), "manage"));
    assert_eq!(rival.send().await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_data_of_old_orders_is_erased() {
    let app = TestApp::with(&[("RETENTION__PERSONAL_DATA", "3650days")], merchant("acme")).await;
    let mut orders = planted_orders(2);
    orders[0]["created_at"] = json!("2001-01-01T00:00:00Z");
    orders[0]["updated_at"] = json!("2001-01-01T00:00:00Z");
    assert_eq!(app.publish("acme", &order_message(&orders)).await.0, StatusCode::OK);
    // The first search may have ended before the orders came.
    app.service.database.execute_raw("UPDATE retention_scan SET finished_at = NULL").await;
    let (database, namespace) = app.service.stop().await;
    let settings: Vec<_> = app.issuer.settings().into_iter().collect();
    let clock = Clock::system();
    let service = TestService::on::<App>(&settings, clock, database, namespace).await;
    testkit::eventually("the old order is erased", SOON, || async {
        let erased = "SELECT count(*) AS n FROM orders WHERE erased_at IS NOT NULL";
        (service.database.count(erased).await == 1).then_some(())
    })
    .await;
    let requested =
        "SELECT count(*) AS n FROM erasures WHERE requested_by = 'retention' AND orders = 1";
    assert_eq!(service.database.count(requested).await, 1);
}

#[tokio::test]
async fn an_erasure_that_fails_does_not_delay_those_of_other_merchants() {
    let app = TestApp::alone().await;
    assert_eq!(app.publish("acme", &order_message(&planted_orders(1))).await.0, StatusCode::OK);
    let pool = app.service.database.pool();
    let mut lock = pool.get().await.unwrap();
    lock.batch_execute("BEGIN; SELECT FROM orders WHERE identifier = 'P-0' FOR UPDATE")
        .await
        .unwrap();
    let failing = erased(&app, &json!({ "order_identifiers": ["P-0"] })).await;
    let other = erased(&app, &json!({ "order_identifiers": ["N-1"] })).await;
    wait_for(&app, other, "waiting").await;
    assert_eq!(show(&app, failing).await["state"], "running");
    lock.batch_execute("ROLLBACK").await.unwrap();
    wait_for(&app, failing, "waiting").await;
}

/// A database with a running erasure of one order, and the task that erases.
async fn running_erasure() -> (testkit::Database, Eraser) {
    let database = testkit::Database::create(App::migrations()).await;
    let pool = database.pool();
    let clock = Clock::system();
    let new = NewErasure {
        id: Uuid::now_v7(),
        merchant: &"acme".parse().unwrap(),
        email: None,
        force: false,
        force_before: None,
        requested_by: "test",
        orders: &["P-0".to_owned()],
        at: clock.now(),
    };
    insert_erasure(&mut pool.get().await.unwrap(), &new).await.unwrap();
    let outbox = Outbox::new(App::NAME);
    let wake = Arc::default();
    (database, Eraser { pool, clock, outbox, wake })
}

#[tokio::test]
async fn an_erasure_that_a_confirmation_has_locked_is_tried_again_soon() {
    let (database, eraser) = running_erasure().await;
    let pool = database.pool();
    let mut lock = pool.get().await.unwrap();
    lock.batch_execute("BEGIN; SELECT FROM erasures FOR UPDATE").await.unwrap();
    assert_eq!(eraser.step().await.unwrap(), Step::Locked);
    lock.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(eraser.step().await.unwrap(), Step::Done);
    assert_eq!(eraser.step().await.unwrap(), Step::Idle);
}

#[tokio::test]
async fn a_restart_does_not_shorten_the_wait_of_an_erasure_that_failed() {
    let (database, eraser) = running_erasure().await;
    let count = async |condition: &str| {
        database.count(&format!("SELECT count(*) AS n FROM erasures WHERE {condition}")).await
    };
    database.execute_raw("UPDATE erasures SET failures = 8").await;
    database.execute_raw("ALTER TABLE erasure_orders RENAME TO away").await;
    assert_eq!(eraser.step().await.unwrap(), Step::Done);
    database.execute_raw("ALTER TABLE away RENAME TO erasure_orders").await;
    assert_eq!(count("failures = 9 AND next_attempt_at > created_at + INTERVAL '256 s'").await, 1);
    // Another replica, or the next process.
    let Eraser { pool, clock, outbox, wake } = eraser;
    let restarted = Eraser { pool, clock, outbox, wake };
    assert_eq!(restarted.step().await.unwrap(), Step::Idle);
    database.execute_raw("UPDATE erasures SET next_attempt_at = now()").await;
    assert_eq!(restarted.step().await.unwrap(), Step::Done);
    assert_eq!(count("state = 'waiting' AND failures = 0 AND next_attempt_at IS NULL").await, 1);
    assert_eq!(restarted.step().await.unwrap(), Step::Idle);
}

#[tokio::test]
async fn a_snapshot_that_waits_for_the_erasure_of_an_unknown_order_is_later_than_the_erasure() {
    let app = TestApp::alone().await;
    let orders = planted_orders(1);
    let pool = app.service.database.pool();
    let mut erasure = pool.get().await.unwrap();
    erasure.batch_execute("BEGIN").await.unwrap();
    let merchant = "acme".parse().unwrap();
    let names = ["P-0".to_owned()];
    let now = Clock::system().now();
    assert_eq!(store::erase_orders(&mut erasure, &merchant, &names, now).await.unwrap(), 0);
    let message = order_message(&orders);
    let publish = app.publish("acme", &message);
    let commit = async {
        let waits_or_done = "SELECT (SELECT count(*) FROM pg_stat_activity \
                                 WHERE datname = current_database() AND wait_event_type = 'Lock') \
                             + (SELECT count(*) FROM outbox WHERE routing_key = 'order.stored.v1') \
                             + (SELECT count(*) FROM published_events \
                                 WHERE routing_key = 'order.stored.v1') AS n";
        testkit::eventually("the snapshot waits, or is stored", SOON, || async {
            (app.service.database.count(waits_or_done).await > 0).then_some(())
        })
        .await;
        let event = ShopperErased {
            erasure_id: Uuid::now_v7(),
            batch: 1,
            merchant: merchant.clone(),
            order_identifiers: names.to_vec(),
            email_sha256: None,
            force: false,
            force_before: None,
        };
        Outbox::new(App::NAME).append(&erasure, now, [event]).await.unwrap();
        store::release_placeholders(&mut erasure, &merchant, &names).await.unwrap();
        erasure.batch_execute("COMMIT").await.unwrap();
    };
    let ((status, _), ()) = futures_util::join!(publish, commit);
    assert_eq!(status, StatusCode::OK);
    let in_order = "WITH all_events AS ( \
            SELECT routing_key, sequence FROM outbox \
            UNION SELECT routing_key, sequence FROM published_events \
        ) SELECT count(*) AS n FROM all_events AS erased, all_events AS stored \
        WHERE erased.routing_key = 'shopper.erased.v1' AND stored.routing_key = 'order.stored.v1' \
            AND erased.sequence < stored.sequence";
    assert_eq!(app.service.database.count(in_order).await, 1);
    assert_eq!(app.get("/v1/orders/P-0", "acme").await.status(), StatusCode::OK);
}
