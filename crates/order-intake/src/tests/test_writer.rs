//! A writer without HTTP, and sample orders.

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
use platform::database::Pool;
use platform::http::RequestMemory;
use serde_json::{Value, json};
use testkit::Database;
use tokio_util::sync::CancellationToken;

use crate::write_batch::{Publication, Published};
use crate::writer::{self, PublishResult, WriteResult, Writer};
use platform::batching::{JobQueue, QueueLimits, SubmitError};

/// A writer with its queue and database.
pub(super) struct TestWriter {
    pub(super) database: Database,
    /// The pool of the writer.
    pool: Pool,
    outbox: Outbox,
    pub(super) queue: Arc<JobQueue<Publication, WriteResult>>,
}

impl TestWriter {
    pub(super) async fn start() -> Self {
        let migrations = vec![messaging::MIGRATIONS, crate::MIGRATIONS];
        let database = Database::create(migrations).await;
        Self {
            pool: database.pool(),
            database,
            outbox: Outbox::new("order-intake"),
            queue: Self::new_queue(),
        }
    }

    /// A queue without a writer.
    pub(super) fn new_queue() -> Arc<JobQueue<Publication, WriteResult>> {
        Arc::new(JobQueue::new(QueueLimits { max_batch: 128, max_queued: 10_000 }))
    }

    pub(super) fn new_writer(
        &self,
        pool: Pool,
        queue: &Arc<JobQueue<Publication, WriteResult>>,
    ) -> Writer {
        Writer::new(pool, self.outbox.clone(), queue.clone())
    }

    /// Runs `work` while a writer processes the queue.
    pub(super) async fn with_writer<T>(&self, work: impl Future<Output = T>) -> T {
        let stop = CancellationToken::new();
        let writer = self.new_writer(self.pool.clone(), &self.queue);
        let work = async {
            let done = work.await;
            stop.cancel();
            done
        };
        tokio::join!(work, writer.run(stop.clone())).0
    }

    /// Waits until the writer is blocked by a row lock of another connection.
    pub(super) async fn wait_until_blocked(&self) {
        testkit::eventually("the writer is blocked", Duration::from_secs(300), async || {
            let waiting = "SELECT pid::text AS line FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (!self.lines(waiting).await.is_empty()).then_some(())
        })
        .await;
    }

    /// Stores a publication with the writer of this queue.
    pub(super) async fn submit_to(
        &self,
        queue: &JobQueue<Publication, WriteResult>,
        publication: Publication,
    ) -> Result<PublishResult, SubmitError> {
        Ok(writer::store(queue, &self.pool, &self.outbox, publication).await?.1)
    }

    /// Queues a publication and waits for its result.
    pub(super) async fn submit(
        &self,
        publication: Publication,
    ) -> Result<PublishResult, SubmitError> {
        self.submit_to(&self.queue, publication).await
    }

    /// Publishes all publications in one batch and returns their results.
    pub(super) async fn publish_batch(&self, publications: Vec<Publication>) -> Vec<PublishResult> {
        let waiting = publications.into_iter().map(|publication| self.submit(publication));
        let results = self.with_writer(futures_util::future::join_all(waiting)).await;
        results.into_iter().map(Result::unwrap).collect()
    }

    pub(super) async fn publish(&self, merchant: &str, orders: &[Value]) -> PublishResult {
        let publication = self.publication(merchant, orders);
        self.publish_batch(vec![publication]).await.remove(0)
    }

    pub(super) fn publication(&self, merchant: &str, orders: &[Value]) -> Publication {
        let merchant: domain::access::MerchantId = merchant.parse().unwrap();
        let received_at = time("2026-03-01T00:00:00Z");
        let document = json!({ "returns_portal_order": { "orders": orders } });
        // Later than every snapshot of these tests.
        let now = time("2030-01-01T00:00:00Z");
        let message =
            OrderMessage::read(&Document::from(document), OrderPolicy::default(), now).unwrap();
        let published = message.snapshots.into_iter().zip(orders).map(|(snapshot, document)| {
            let order = snapshot.order.clone();
            let event = OrderStored { merchant: merchant.clone(), order, is_reset: false };
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

    /// The column `line` of all rows of a query.
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

/// A sample order with a refund.
pub(super) fn refunded() -> Value {
    let refunded = |order: &Value| order["refunds"].as_array().is_some_and(|it| !it.is_empty());
    samples(100).into_iter().find(refunded).unwrap()
}

pub(super) fn with(mut order: Value, change: impl FnOnce(&mut Value)) -> Value {
    change(&mut order);
    order
}

#[track_caller]
pub(super) fn check(result: &PublishResult, expected: &[OrderOutcome]) {
    assert_eq!(result.as_ref().unwrap(), expected);
}
