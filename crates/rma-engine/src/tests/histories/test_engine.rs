//! The service without HTTP, for histories.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text};
use diesel_async::RunQueryDsl as _;
use domain::json::Digest;
use domain::order::Order;
use domain::returns::{Rma, RmaMessage};
use platform::database::{LeaderTask as _, sql};
use platform::idempotency::{IdempotencyKey, OwnedKey};
use platform::{ErrorKind, Failure as _, Process, Service as _, settings};
use serde_json::json;
use testkit::{Database, Namespace, eventually, publish_merchant};

use super::actions::{Model, Operation};
use crate::deadlines::DeadlineWorker;
use crate::error::Error;
use crate::projection;
use crate::projection::order::Snapshot;
use crate::returns::guarantees;
use crate::returns::new_return_batches;
use crate::returns::receiving;
use crate::returns::receiving::ReceivingRequest;
use crate::returns::report_batches;
use crate::returns::reviews::{self, NewDecision};
use crate::returns::{Cancellation, NewReturn};
use crate::shipped_units::ShippedUnits;
use crate::{App, Settings, exchanges, returns};

pub(super) struct TestEngine {
    pub(super) app: App,
    process: Process,
    namespace: Namespace,
    database: Database,
}

/// A message to a merchant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SentMessage {
    pub(super) ordering_key: String,
    pub(super) sequence: i64,
    pub(super) event: String,
    pub(super) message: RmaMessage,
}

/// State that a replay must not change.
#[derive(Debug, PartialEq)]
pub(super) struct Records {
    returns: Vec<Rma>,
    order: (Order, ShippedUnits),
    messages: Vec<SentMessage>,
    confirmed: i64,
}

/// Whether the action was accepted. A rejected action must fail with a client error.
pub(super) fn accepted(outcome: &Result<(), Error>) -> bool {
    let Err(error) = outcome else { return true };
    let messages =
        [ErrorKind::Conflict, ErrorKind::Invalid, ErrorKind::Missing].contains(&error.kind());
    assert!(messages, "{error:?}");
    false
}

impl TestEngine {
    pub(super) async fn open() -> Self {
        let database = Database::create(App::migrations()).await;
        let namespace = Namespace::create();
        let url = database.url();
        let settings = [
            ("DATABASE__URL", url.as_str()),
            ("BROKER__URL", namespace.amqp_url()),
            ("BROKER__NAMESPACE", &namespace.name),
            ("IDENTITY__ISSUER", "http://127.0.0.1:9"),
            ("IDENTITY__JWKS_URL", "http://127.0.0.1:9"),
            ("SEALING__KEYS", testkit::sealing_keys()),
            ("SHOPPER__PROOF_KEYS", testkit::sealing_keys()),
            // These merchants have no endpoint that receives messages.
            ("DELIVERY__RETRY_BASE", "1h"),
            ("DELIVERY__RETRY_FACTOR", "1"),
        ];
        let environment: HashMap<_, _> = settings
            .iter()
            .map(|(key, value)| (format!("RMA_ENGINE__{key}"), (*value).to_owned()))
            .collect();
        let (_, own) =
            settings::load::<Settings>(App::NAME, App::DEFAULTS, None, environment).unwrap();
        let process = testkit::process(&database);
        let (app, _) = App::start(&process, own).unwrap();
        eventually("the service is ready", Duration::from_secs(300), || async {
            process.health.report().await.ready.then_some(())
        })
        .await;
        Self { app, process, namespace, database }
    }

    /// Replicates the merchant: deadlines of unknown merchants wait.
    pub(super) async fn add_merchant(&self, model: &Model) {
        publish_merchant(&self.namespace, App::NAME, model.merchant.clone()).await;
        eventually("the merchant is replicated", Duration::from_secs(300), || async {
            self.app.merchants.get(model.id())
        })
        .await;
    }

    pub(super) async fn close(&self) {
        assert!(self.process.tasks.drain(Duration::from_secs(10)).await, "tasks did not stop");
    }

    pub(super) async fn run(&self, operation: &Operation, model: &Model) -> Result<(), Error> {
        let app = &self.app;
        let merchant = &model.merchant;
        let shared = || Arc::new(merchant.clone());
        let key_of = |operation, key, request: &serde_json::Value| {
            let id = &merchant.identifier;
            IdempotencyKey {
                merchant: Some(id),
                operation,
                key,
                name: "key",
                request: Digest::of_value(request),
            }
        };
        match operation {
            Operation::Return { key, request } => {
                let key = Some(OwnedKey::from(key_of("returns", key, &json!(request))));
                let new = NewReturn { request: request.clone(), quoted: None, shopper: None };
                new_return_batches::create(app, shared(), "test", key, new).await.map(drop)
            }
            Operation::Cancel { rma, units } => {
                let request = Cancellation { units: units.as_deref(), reason: None, shopper: None };
                returns::cancel(app, merchant, "test", rma, request).await.map(drop)
            }
            Operation::Track(reported) => {
                report_batches::track(app, shared(), "test", (**reported).clone()).await.map(drop)
            }
            Operation::Receive { key, rma, receipt } => {
                let key = Some(key_of("receipts", key, &json!(receipt)));
                let receipt = receipt.clone();
                let delivered = ReceivingRequest { close: receipt.is_none(), receipt, key };
                receiving::receive(app, merchant, "test", rma, &delivered).await.map(drop)
            }
            Operation::Project(..) => self.project(&[operation]).await,
            Operation::Expire { rma } => self.expire(rma, model).await,
            Operation::Waive { rma } => {
                guarantees::waive(app, merchant, "test", rma, (None, "note")).await.map(drop)
            }
            Operation::Decide { rma, decision } => {
                let new = NewDecision { decision: *decision, note: None, key: None };
                reviews::decide(app, merchant, "test", rma, &new).await.map(drop)
            }
            Operation::Place(placed) => {
                let now = app.clock.now();
                let mut conn = app.pool.get().await?;
                conn.transaction(async |conn| {
                    exchanges::record_placed(conn, &app.messages, &app.outbox, placed, now).await
                })
                .await
            }
            Operation::Fail(failed) => {
                let now = app.clock.now();
                let mut conn = app.pool.get().await?;
                conn.transaction(async |conn| {
                    exchanges::record_failed(conn, &app.messages, failed, now).await
                })
                .await
            }
        }
    }

    /// Lets the deadline of a return pass, while the service processes deadlines too.
    async fn expire(&self, rma: &str, model: &Model) -> Result<(), Error> {
        let mut worker = DeadlineWorker::new(&self.app);
        let mut conn = self.app.pool.dedicated().await?;
        let pass = sql(
            "UPDATE return_deadlines SET started_at = '2000-01-01', due_at = '2000-01-01' \
             WHERE merchant = $1 AND rma_identifier = $2",
            (model.id().as_str(), rma),
        );
        if pass.execute(&mut conn).await? > 0 {
            worker.poll(&mut conn).await?;
        }
        // The service may have taken the deadline, and its transaction ends later.
        let passed = format!(
            "SELECT count(*) AS n FROM return_deadlines \
             WHERE merchant = '{}' AND rma_identifier = '{rma}' AND started_at = '2000-01-01'",
            model.id()
        );
        eventually("the deadline is processed", Duration::from_secs(300), || async {
            (self.database.count(&passed).await == 0).then_some(())
        })
        .await;
        Ok(())
    }

    /// Retries a lost race, like the consumer.
    pub(super) async fn project(&self, batch: &[&Operation]) -> Result<(), Error> {
        let snapshots: Vec<_> = batch
            .iter()
            .filter_map(|operation| match operation {
                Operation::Project(stored, sequence) => {
                    let stored_at = stored.order.updated_at;
                    Some(Snapshot { event: stored, sequence: *sequence, stored_at })
                }
                _ => None,
            })
            .collect();
        let app = &self.app;
        let now = self.app.clock.now();
        let mut conn = app.pool.get().await?;
        loop {
            let projected = conn.transaction(async |conn| {
                let snapshots = snapshots.iter().copied();
                projection::project(conn, &app.messages, snapshots, usize::MAX, now).await
            });
            match projected.await {
                Err(Error::ConcurrentInsert) => {}
                outcome => return outcome,
            }
        }
    }

    /// The merchant's returns, oldest first.
    pub(super) async fn returns(&self, model: &Model) -> Vec<Rma> {
        let query = "SELECT document AS line FROM returns WHERE merchant = $1 \
                     ORDER BY created_at, rma_identifier";
        self.lines(query, model).await.iter().map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    pub(super) async fn order(&self, model: &Model) -> (Order, ShippedUnits) {
        let order = self.lines("SELECT document AS line FROM orders WHERE merchant = $1", model);
        let order = serde_json::from_str(&order.await[0]).unwrap();
        let shipped_units =
            self.lines("SELECT shipped_units AS line FROM orders WHERE merchant = $1", model);
        (order, serde_json::from_str(&shipped_units.await[0]).unwrap())
    }

    pub(super) async fn sent_messages(&self, model: &Model) -> Vec<SentMessage> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = Text)]
            ordering_key: String,
            #[diesel(sql_type = BigInt)]
            sequence: i64,
            #[diesel(sql_type = Text)]
            event: String,
            #[diesel(sql_type = Text)]
            body: String,
        }
        let rows: Vec<Row> = sql(
            "SELECT ordering_key, sequence, event, convert_from(body, 'UTF8') AS body \
             FROM delivery_messages WHERE merchant = $1 ORDER BY ordering_key, sequence",
            model.id().as_str(),
        )
        .load(&mut *self.app.pool.get().await.unwrap())
        .await
        .unwrap();
        let messages = |row: Row| SentMessage {
            ordering_key: row.ordering_key,
            sequence: row.sequence,
            event: row.event,
            message: serde_json::from_str(&row.body).unwrap(),
        };
        rows.into_iter().map(messages).collect()
    }

    pub(super) async fn records(&self, model: &Model) -> Records {
        // The relay deletes rows of the outbox, so the sequence counts them.
        let confirmed = "SELECT coalesce(last_value, 0)::text AS line FROM pg_sequences \
                         WHERE sequencename LIKE 'outbox%' AND $1 <> ''";
        Records {
            returns: self.returns(model).await,
            order: self.order(model).await,
            messages: self.sent_messages(model).await,
            confirmed: self.lines(confirmed, model).await[0].parse().unwrap(),
        }
    }

    /// The text column `line` of a query about the merchant.
    pub(super) async fn lines(&self, query: &str, model: &Model) -> Vec<String> {
        #[derive(QueryableByName)]
        struct Line {
            #[diesel(sql_type = Text)]
            line: String,
        }
        let mut conn = self.app.pool.get().await.unwrap();
        let query = sql(query, model.id().as_str());
        let lines: Vec<Line> = query.load(&mut *conn).await.unwrap();
        lines.into_iter().map(|it| it.line).collect()
    }
}
