//! A writer without HTTP before it, and orders to hand to it.

use std::sync::Arc;
use std::time::Duration;

use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::RunQueryDsl as _;
use domain::json::{Document, JsonValue};
use domain::order::sample::{Orders, message};
use domain::order::{Order, OrderMessage, OrderOutcome, OrderPolicy, OrderStored};
use messaging::Outbox;
use platform::Timestamp;
use platform::database::{Pool, Settings};
use platform::http::RequestMemory;
use serde_json::{Value, json};
use testkit::Database;
use tokio_util::sync::CancellationToken;

use crate::books::{Publication, Published};
use crate::group::{Bounds, Group};
use crate::writer::{Answer, Writer};

/// A database with a writer in front of it.
pub(super) struct Desk {
    pub(super) database: Database,
    /// What its writer has.
    pool: Pool,
    outbox: Outbox,
    pub(super) group: Arc<Group<Publication, Answer>>,
}

impl Desk {
    pub(super) async fn open() -> Self {
        let migrations = vec![messaging::MIGRATIONS, crate::MIGRATIONS];
        let database = Database::create(migrations).await;
        Self {
            pool: database.pool(),
            database,
            outbox: Outbox::new("order-intake"),
            group: Self::queue(),
        }
    }

    /// One whose writer gives each statement so long.
    pub(super) async fn with_patience(statement_timeout: Duration) -> Self {
        let desk = Self::open().await;
        let settings = Settings { statement_timeout, ..desk.database.settings() };
        Self { pool: Pool::new("test", &settings).unwrap(), ..desk }
    }

    /// One that nobody takes from yet.
    pub(super) fn queue() -> Arc<Group<Publication, Answer>> {
        Arc::new(Group::new(Bounds { together: 128, waiting: 10_000 }))
    }

    pub(super) fn writer(&self, pool: Pool, queue: &Arc<Group<Publication, Answer>>) -> Writer {
        Writer::new(pool, self.outbox.clone(), queue.clone())
    }

    /// What comes of this while a writer works.
    pub(super) async fn with_writer<T>(&self, work: impl Future<Output = T>) -> T {
        let stop = CancellationToken::new();
        let writer = self.writer(self.pool.clone(), &self.group);
        let work = async {
            let done = work.await;
            stop.cancel();
            done
        };
        tokio::join!(work, writer.run(stop.clone())).0
    }

    /// Waits until the writer waits for somebody else's lock.
    pub(super) async fn writer_waits(&self) {
        testkit::eventually("the writer waits", Duration::from_secs(30), async || {
            let waiting = "SELECT pid::text AS line FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (!self.lines(waiting).await.is_empty()).then_some(())
        })
        .await;
    }

    /// Publishes all of these in one group and gives their answers.
    pub(super) async fn publish_together(&self, publications: Vec<Publication>) -> Vec<Answer> {
        let waiting = publications.into_iter().map(|publication| self.group.submit(publication));
        let answers = self.with_writer(futures_util::future::join_all(waiting)).await;
        answers.into_iter().map(Result::unwrap).collect()
    }

    pub(super) async fn publish(&self, merchant: &str, orders: &[Value]) -> Answer {
        let publication = self.publication(merchant, orders);
        self.publish_together(vec![publication]).await.remove(0)
    }

    pub(super) fn publication(&self, merchant: &str, orders: &[Value]) -> Publication {
        let merchant: domain::access::MerchantId = merchant.parse().unwrap();
        let received_at = time("2026-03-01T00:00:00Z");
        let document = json!({ "returns_portal_order": { "orders": orders } });
        let message =
            OrderMessage::read(&Document::from(document), OrderPolicy::default()).unwrap();
        let published = message.snapshots.into_iter().zip(orders).map(|(snapshot, document)| {
            let event = OrderStored { merchant: merchant.clone(), order: snapshot.order.clone() };
            Published {
                snapshot,
                document: document.to_string(),
                event: self.outbox.serialize(received_at, &event).unwrap(),
            }
        });
        let orders = published.collect();
        Publication {
            merchant,
            policy: OrderPolicy::default(),
            received_at,
            orders,
            _memory: RequestMemory::default(),
        }
    }

    /// The lines a query prints.
    pub(super) async fn lines(&self, query: &str) -> Vec<String> {
        #[derive(QueryableByName)]
        struct Line {
            #[diesel(sql_type = Text)]
            line: String,
        }
        let mut conn = self.database.pool().get().await.unwrap();
        let lines: Vec<Line> = diesel::sql_query(query).load(&mut *conn).await.unwrap();
        lines.into_iter().map(|line| line.line).collect()
    }

    pub(super) async fn events(&self) -> Vec<String> {
        let subject = "SELECT event::jsonb ->> 'subject' AS line FROM outbox ORDER BY sequence";
        self.lines(subject).await
    }
}

pub(super) fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub(super) fn samples(count: usize) -> Vec<Value> {
    let orders: Vec<Order> = Orders::new(7, time("2026-03-01T00:00:00Z")).take(count).collect();
    let message = Document::from(message(&orders));
    OrderMessage::documents(message.value()).map(JsonValue::to_value).collect()
}

/// A sample with a refund.
pub(super) fn refunded() -> Value {
    let refunded = |order: &Value| order["refunds"].as_array().is_some_and(|it| !it.is_empty());
    samples(100).into_iter().find(refunded).unwrap()
}

pub(super) fn with(mut order: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut order);
    order
}

#[track_caller]
pub(super) fn check(answer: &Answer, expected: &[OrderOutcome]) {
    assert_eq!(answer.as_ref().unwrap(), expected);
}
