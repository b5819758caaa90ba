//! Publications and the database, without HTTP around them.

use std::slice::from_ref as one;
use std::sync::Arc;
use std::time::Duration;

use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{RunQueryDsl as _, SimpleAsyncConnection as _};
use domain::document::{Document, Json};
use domain::order::sample::{Orders, message};
use domain::order::{Message, Order, OrderStored, Outcome, Policy};
use messaging::Outbox;
use platform::database::Pool;
use platform::http::Room;
use platform::{Tasks, Timestamp};
use serde_json::{Value, json};
use testkit::Database;
use tokio_util::sync::CancellationToken;

use crate::books::{Publication, Published};
use crate::group::{Bounds, Group};
use crate::writer::{Answer, PublishError, Writer};

/// A database with a writer in front of it.
struct Desk {
    database: Database,
    outbox: Outbox,
    group: Arc<Group<Publication, Answer>>,
}

impl Desk {
    async fn open() -> Self {
        let migrations = vec![messaging::MIGRATIONS, crate::MIGRATIONS];
        let bounds = Bounds { group_rows: 128, waiting_rows: 10_000 };
        Self {
            database: Database::create(migrations).await,
            outbox: Outbox::new("order-intake"),
            group: Arc::new(Group::new(bounds)),
        }
    }

    fn writer(&self, pool: Pool) -> Writer {
        Writer::new(pool, self.outbox.clone(), self.group.clone())
    }

    /// Publishes all of these in one group and gives their answers.
    async fn publish_together(&self, publications: Vec<Publication>) -> Vec<Answer> {
        let waiting = publications.into_iter().map(|publication| {
            let rows = publication.orders.len();
            self.group.submit(publication, rows)
        });
        let stop = CancellationToken::new();
        let writer = self.writer(self.database.pool());
        let answers = async {
            let answers = futures_util::future::join_all(waiting).await;
            stop.cancel();
            answers
        };
        let (answers, ()) = tokio::join!(answers, writer.run(stop.clone()));
        answers.into_iter().map(Result::unwrap).collect()
    }

    async fn publish(&self, merchant: &str, orders: &[Value]) -> Answer {
        let publication = self.publication(merchant, orders);
        self.publish_together(vec![publication]).await.remove(0)
    }

    fn publication(&self, merchant: &str, orders: &[Value]) -> Publication {
        let merchant: domain::access::MerchantId = merchant.parse().unwrap();
        let received_at = time("2026-03-01T00:00:00Z");
        let document = json!({ "returns_portal_order": { "orders": orders } });
        let message = Message::read(&Document::from(document), Policy::default()).unwrap();
        let published = message.snapshots.into_iter().zip(orders).map(|(snapshot, document)| {
            let event = OrderStored { merchant: merchant.clone(), order: snapshot.order.clone() };
            Published {
                snapshot,
                document: document.to_string(),
                event: self.outbox.prepare(received_at, &event).unwrap(),
            }
        });
        let orders = published.collect();
        Publication {
            merchant,
            policy: Policy::default(),
            received_at,
            orders,
            _room: Room::default(),
        }
    }

    /// The lines a query prints.
    async fn lines(&self, query: &str) -> Vec<String> {
        #[derive(QueryableByName)]
        struct Line {
            #[diesel(sql_type = Text)]
            line: String,
        }
        let mut conn = self.database.pool().get().await.unwrap();
        let lines: Vec<Line> = diesel::sql_query(query).load(&mut *conn).await.unwrap();
        lines.into_iter().map(|line| line.line).collect()
    }

    async fn events(&self) -> Vec<String> {
        let subject = "SELECT event::jsonb ->> 'subject' AS line FROM outbox ORDER BY position";
        self.lines(subject).await
    }
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn samples(count: usize) -> Vec<Value> {
    let orders: Vec<Order> = Orders::new(7, time("2026-03-01T00:00:00Z")).take(count).collect();
    let message = Document::from(message(&orders));
    Message::documents(message.value()).map(Json::to_value).collect()
}

/// A sample with a refund.
fn refunded() -> Value {
    let refunded = |order: &Value| order["refunds"].as_array().is_some_and(|it| !it.is_empty());
    samples(100).into_iter().find(refunded).unwrap()
}

fn with(mut order: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut order);
    order
}

#[track_caller]
fn check(answer: &Answer, expected: &[Outcome]) {
    assert_eq!(answer.as_ref().unwrap(), expected);
}

#[tokio::test]
async fn an_order_is_stored_whole_and_announced() {
    let desk = Desk::open().await;
    let order =
        with(samples(1).remove(0), |order| order["unknown"] = json!({ "kept": [1.5, "é"] }));
    check(&desk.publish("acme", one(&order)).await, &[Outcome::Stored]);
    let stored = desk.lines("SELECT document AS line FROM orders").await;
    assert_eq!(serde_json::from_str::<Value>(&stored[0]).unwrap(), order);
    let identifier = order["identifier"].as_str().unwrap();
    assert_eq!(desk.events().await, [format!("acme/{identifier}")]);
    let found = "SELECT identifier AS line FROM orders WHERE customer_email = ";
    let email = order["customer"]["email"].as_str().unwrap();
    assert_eq!(desk.lines(&format!("{found}'{email}'")).await, [identifier]);
    let line = order["items"][0]["identifier"].as_str().unwrap();
    let found =
        format!("SELECT identifier AS line FROM orders WHERE line_identifiers @> '{{{line}}}'");
    assert_eq!(desk.lines(&found).await, [identifier]);
}

#[tokio::test]
async fn a_shopper_known_by_nothing_but_an_address_is_found_by_it() {
    let desk = Desk::open().await;
    let customers = [
        ("customer", json!({ "identifier": "Ada@Mail.example" })),
        ("the service", json!({ "identifier": "Bo@Mail.example", "email": "" })),
        ("customer", json!({ "identifier": "id@shop.example", "email": "Cy@Mail.example" })),
        ("customer", json!({ "identifier": "4711" })),
    ];
    let orders = samples(customers.len()).into_iter().zip(customers);
    let orders: Vec<_> = orders
        .map(|(order, (key, customer))| {
            with(order, |order| {
                order.as_object_mut().unwrap().remove("customer");
                order[key] = customer;
            })
        })
        .collect();
    check(&desk.publish("acme", &orders).await, &[Outcome::Stored; 4]);
    let found = "SELECT coalesce(customer_email, '-') AS line FROM orders ORDER BY line";
    let emails = ["-", "ada@mail.example", "bo@mail.example", "cy@mail.example"];
    assert_eq!(desk.lines(found).await, emails);
}

#[tokio::test]
async fn the_same_order_again_changes_nothing_and_is_not_announced() {
    let desk = Desk::open().await;
    let orders = samples(3);
    check(&desk.publish("acme", &orders).await, &[Outcome::Stored; 3]);
    check(&desk.publish("acme", &orders).await, &[Outcome::Unchanged; 3]);
    check(&desk.publish("rival", &orders).await, &[Outcome::Stored; 3]);
    assert_eq!(desk.events().await.len(), 6);
}

#[tokio::test]
async fn an_older_snapshot_is_noted_and_not_applied() {
    let desk = Desk::open().await;
    let order = samples(1).remove(0);
    let older = with(order.clone(), |order| order["updated_at"] = json!("2020-01-01T00:00:00Z"));
    desk.publish("acme", one(&order)).await.unwrap();
    for _ in 0..2 {
        check(&desk.publish("acme", one(&older)).await, &[Outcome::Stale]);
    }
    let stored = desk.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(stored, [order["updated_at"].as_str().unwrap()]);
    assert_eq!(desk.events().await.len(), 1);
    assert_eq!(desk.lines("SELECT order_identifier AS line FROM stale_snapshots").await.len(), 1);
}

#[tokio::test]
async fn several_snapshots_of_one_order_in_one_group_follow_each_other() {
    let desk = Desk::open().await;
    let first =
        with(samples(1).remove(0), |order| order["updated_at"] = json!("2026-01-01T00:00:00Z"));
    let second = with(first.clone(), |order| order["updated_at"] = json!("2026-01-02T00:00:00Z"));
    let publications = vec![
        desk.publication("acme", &[first.clone(), second.clone(), first.clone()]),
        desk.publication("acme", one(&second)),
    ];
    let answers = desk.publish_together(publications).await;
    check(&answers[0], &[Outcome::Stored, Outcome::Stored, Outcome::Stale]);
    check(&answers[1], &[Outcome::Unchanged]);
    assert_eq!(desk.events().await.len(), 2);
    let stored = desk.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(stored, ["2026-01-02T00:00:00Z"]);
}

#[tokio::test]
async fn the_first_of_two_snapshots_can_be_older_than_what_is_stored() {
    let desk = Desk::open().await;
    let order = samples(1).remove(0);
    let [oldest, middle, newest] = [1, 2, 3].map(|day| {
        with(order.clone(), |order| {
            order["updated_at"] = json!(format!("2026-01-0{day}T00:00:00Z"))
        })
    });
    check(&desk.publish("acme", &[middle]).await, &[Outcome::Stored]);
    let both = desk.publish("acme", &[oldest, newest]).await;
    check(&both, &[Outcome::Stale, Outcome::Stored]);
    assert_eq!(desk.events().await.len(), 2);
}

/// Or else PostgreSQL would write rows and take them back, and its log would be full of errors.
#[tokio::test]
async fn what_is_no_news_is_seen_before_anything_is_written() {
    let desk = Desk::open().await;
    let (order, other) = (refunded(), samples(101).remove(100));
    check(&desk.publish("acme", one(&order)).await, &[Outcome::Stored]);
    let newer = with(order.clone(), |order| order["updated_at"] = json!("2027-01-01T00:00:00Z"));
    check(&desk.publish("acme", &[newer]).await, &[Outcome::Stored]);
    check(&desk.publish("acme", &[order, other]).await, &[Outcome::Stale, Outcome::Stored]);
    let positions = desk.lines("SELECT position::text AS line FROM outbox ORDER BY position").await;
    assert_eq!(positions, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_changed_refund_rejects_its_message_and_no_other() {
    let desk = Desk::open().await;
    let (order, others) = (refunded(), samples(104).split_off(100));
    desk.publish("acme", one(&order)).await.unwrap();
    let changed = with(order.clone(), |order| order["refunds"][0]["note"] = json!("changed"));
    let publications = vec![
        desk.publication("acme", &others[..1]),
        desk.publication("acme", &[others[1].clone(), changed]),
        desk.publication("acme", &others[2..]),
    ];
    let answers = desk.publish_together(publications).await;
    check(&answers[0], &[Outcome::Stored]);
    let Err(PublishError::Refunds(invalid)) = &answers[1] else { panic!("{:?}", answers[1]) };
    assert_eq!(invalid.errors[0].field, "$.returns_portal_order.orders[1].refunds[0]");
    check(&answers[2], &[Outcome::Stored; 2]);
    assert_eq!(desk.events().await.len(), 4);
}

#[tokio::test]
async fn a_refund_belongs_to_one_order() {
    let desk = Desk::open().await;
    let order = refunded();
    let other = with(order.clone(), |order| order["identifier"] = json!("another"));
    let answers = desk
        .publish_together(vec![
            desk.publication("acme", one(&order)),
            desk.publication("acme", one(&other)),
            desk.publication("rival", &[other]),
        ])
        .await;
    check(&answers[0], &[Outcome::Stored]);
    assert!(matches!(answers[1], Err(PublishError::Refunds(_))));
    check(&answers[2], &[Outcome::Stored]);
}

#[tokio::test]
async fn a_line_of_a_refund_belongs_to_one_refund() {
    let desk = Desk::open().await;
    let order = refunded();
    let other = with(order.clone(), |order| {
        order["identifier"] = json!("another");
        order["refunds"][0]["identifier"] = json!("another refund");
    });
    let answers = desk
        .publish_together(vec![
            desk.publication("acme", one(&order)),
            desk.publication("acme", one(&other)),
            desk.publication("rival", one(&other)),
        ])
        .await;
    check(&answers[0], &[Outcome::Stored]);
    assert!(matches!(answers[1], Err(PublishError::Refunds(_))));
    check(&answers[2], &[Outcome::Stored]);
    // The same when the first is stored already.
    let late = desk.publish("acme", one(&other)).await;
    let Err(PublishError::Refunds(invalid)) = late else { panic!("{late:?}") };
    let field = "$.returns_portal_order.orders[0].refunds[0].refund_line_items[0].identifier";
    assert_eq!(invalid.errors[0].field, field);
    let newer = with(order, |order| order["note"] = json!("other words, the same refund"));
    check(&desk.publish("acme", &[newer]).await, &[Outcome::Stored]);
}

#[tokio::test]
async fn a_poisonous_order_harms_only_itself() {
    let desk = Desk::open().await;
    let orders = samples(3);
    let mut publications: Vec<_> =
        orders.iter().map(|order| desk.publication("acme", one(order))).collect();
    publications[1].orders[0].document = "PostgreSQL takes no \0".to_owned();
    let answers = desk.publish_together(publications).await;
    check(&answers[0], &[Outcome::Stored]);
    assert!(matches!(answers[1], Err(PublishError::Database(_))));
    check(&answers[2], &[Outcome::Stored]);
    assert_eq!(desk.events().await.len(), 2);
}

/// Every writer reads before it writes; whoever is second has to read again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_meet_at_the_same_orders_lose_nothing() {
    let desk = Desk::open().await;
    let (tasks, pool) = (Tasks::default(), desk.database.pool());
    for _ in 0..4 {
        tasks.spawn("writer", |stop| desk.writer(pool.clone()).run(stop));
    }
    let order = refunded();
    let snapshot = |second: u32| {
        let updated_at = format!("2026-02-01T00:00:{second:02}Z");
        with(order.clone(), |order| order["updated_at"] = json!(updated_at))
    };
    let publications = (0..60).map(|second| desk.publication("acme", &[snapshot(second)]));
    let waiting = publications.map(|publication| desk.group.submit(publication, 128));
    let answers = futures_util::future::join_all(waiting).await;
    assert!(tasks.drain(Duration::from_secs(5)).await);
    let stored = answers.iter().filter(|answer| match answer.as_ref().unwrap() {
        Ok(outcomes) => outcomes == &[Outcome::Stored],
        Err(error) => panic!("{error}"),
    });
    assert_eq!(desk.events().await.len(), stored.count());
    let last = desk.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(last, ["2026-02-01T00:00:59Z"]);
}

/// Two snapshots of one moment are told apart by the numbers of their events.
#[tokio::test]
async fn an_event_is_numbered_when_nobody_else_can_write_its_order_any_more() {
    let desk = Desk::open().await;
    let order = samples(1).remove(0);
    check(&desk.publish("acme", one(&order)).await, &[Outcome::Stored]);
    let pool = desk.database.pool();
    let mut other = pool.get().await.unwrap();
    other.batch_execute("BEGIN; SELECT FROM orders FOR UPDATE").await.unwrap();
    let newer = with(order, |order| order["updated_at"] = json!("2027-01-01T00:00:00Z"));
    let publishing = desk.publish("acme", one(&newer));
    let drawing = async {
        testkit::eventually("the writer waits", Duration::from_secs(30), async || {
            let waiting = "SELECT pid::text AS line FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (!desk.lines(waiting).await.is_empty()).then_some(())
        })
        .await;
        other.batch_execute("SELECT nextval('outbox_position_seq'); COMMIT").await.unwrap();
    };
    let (answer, ()) = tokio::join!(publishing, drawing);
    check(&answer, &[Outcome::Stored]);
    let positions = desk.lines("SELECT position::text AS line FROM outbox ORDER BY position").await;
    assert_eq!(positions, ["1", "3"]);
}
