//! `GET /v1/backlog`: the events and messages of a service that wait.
//!
//! The numbers of the queues come over the service's own connection, so no service needs the password
//! of the management API.
//!
//! See docs/decisions/backlog.md.

use std::time::Duration;

use actix_web::{get, web};
use diesel_async::RunQueryDsl as _;
use domain::access::Scope;
use domain::message_kind::MessageKind;
use platform::{
    Clock, Problem, Process, Timestamp, chain,
    database::{DatabaseError, Pool, prepared, sql},
    identity::{Access, Caller},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    broker::Broker,
    connection::{BrokerConnection, BrokerError, with_timeout},
    topology::{Queue, inspect_queue},
};

/// Limit for all requests to the broker together.
const BROKER_DEADLINE: Duration = Duration::from_secs(1);
/// Events of the outbox are counted up to this number.
const MAX_COUNTED: i64 = 10_000;

/// The outbox, the published events and the queues of one service, for operators.
#[derive(Clone)]
pub struct Backlog {
    pub(crate) service: &'static str,
    pub(crate) pool: Pool,
    pub(crate) event_retention: Duration,
    clock: Clock,
    connection: BrokerConnection,
    queues: Vec<Queue>,
}

/// The events and messages of a service that wait.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServiceBacklog {
    #[schema(value_type = String, example = "rma-engine")]
    pub service: &'static str,
    pub outbox: OutboxBacklog,
    pub broker: BrokerState,
    /// The queues that the service consumes. Empty if the broker is unavailable.
    pub queues: Vec<QueueBacklog>,
}

/// The events that the broker has not confirmed yet.
#[derive(Debug, Serialize, ToSchema)]
pub struct OutboxBacklog {
    /// Number of events, counted up to 10,000.
    pub unpublished: i64,
    /// Age of the oldest event; null if none waits.
    pub oldest_age_seconds: Option<i64>,
}

/// Whether the broker responded within a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BrokerState {
    Available,
    Unavailable,
}

/// The messages of a queue.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct QueueBacklog {
    #[schema(example = "rma-engine.order.stored.v1")]
    pub queue: String,
    /// Messages that wait for a consumer. Messages that a consumer holds do not count.
    pub depth: u32,
    /// Consumers of all replicas.
    pub consumers: u32,
    /// Messages in the dead-letter queue.
    pub dead_letters: u32,
}

/// Show the backlog
///
/// The events that wait for the broker, and for each queue of the service the messages that wait, the
/// consumers and the dead letters. The token must not belong to a merchant. If the broker is
/// unavailable, the response has no queues.
#[utoipa::path(
    tag = "events",
    security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    responses((status = 200, body = ServiceBacklog))
)]
#[get("/v1/backlog")]
pub(crate) async fn show_backlog(
    backlog: web::Data<Backlog>,
    caller: Caller,
) -> Result<web::Json<ServiceBacklog>, Problem> {
    caller.require(Scope::Read)?;
    if let Some(merchant) = &caller.claims.merchant {
        return Err(Access::OtherMerchant(merchant.clone()).into());
    }
    Ok(web::Json(backlog.report().await?))
}

platform::rows! {
    struct OutboxRow {
        unpublished: i64,
        oldest: Option<Timestamp>,
    }
}

const OUTBOX: &str = "\
    SELECT (SELECT count(*) FROM (SELECT FROM outbox LIMIT $1) AS counted) AS unpublished, \
        (SELECT created_at FROM outbox ORDER BY sequence LIMIT 1) AS oldest";

impl Backlog {
    /// The backlog of a service that delivers messages of these kinds.
    pub fn new(
        service: &'static str,
        process: &Process,
        broker: &Broker,
        kinds: &[MessageKind],
    ) -> Self {
        Self {
            service,
            pool: process.pool.clone(),
            event_retention: broker.settings.event_retention(),
            clock: process.clock.clone(),
            // The broker may block the connection that publishes.
            connection: broker.consuming.clone(),
            queues: broker.topology.queues_of(service, kinds),
        }
    }

    pub async fn report(&self) -> Result<ServiceBacklog, DatabaseError> {
        let (outbox, queues) = tokio::join!(self.outbox(), self.queues_in_time());
        let broker =
            if queues.is_some() { BrokerState::Available } else { BrokerState::Unavailable };
        let queues = queues.unwrap_or_default();
        Ok(ServiceBacklog { service: self.service, outbox: outbox?, broker, queues })
    }

    async fn outbox(&self) -> Result<OutboxBacklog, DatabaseError> {
        let query = prepared(sql(OUTBOX, MAX_COUNTED));
        let OutboxRow { unpublished, oldest } =
            query.get_result(&mut self.pool.get().await?).await?;
        let age = |created_at: Timestamp| (self.clock.now() - created_at).num_seconds().max(0);
        Ok(OutboxBacklog { unpublished, oldest_age_seconds: oldest.map(age) })
    }

    /// The queues, unless the broker is unavailable.
    async fn queues_in_time(&self) -> Option<Vec<QueueBacklog>> {
        match tokio::time::timeout(BROKER_DEADLINE, self.queues()).await {
            Ok(Ok(queues)) => Some(queues),
            Ok(Err(error)) => {
                tracing::info!(error = chain(&error), "the broker did not report the queues");
                None
            }
            Err(_elapsed) => {
                tracing::info!("the broker did not report the queues in time");
                None
            }
        }
    }

    async fn queues(&self) -> Result<Vec<QueueBacklog>, BrokerError> {
        let channel = self.connection.current()?.channel().await?;
        let mut backlogs = Vec::with_capacity(self.queues.len());
        for queue in &self.queues {
            let work = inspect_queue(&channel, &queue.name).await?;
            let dead = inspect_queue(&channel, &queue.dead_letter_queue()).await?;
            backlogs.push(QueueBacklog {
                queue: queue.name.clone(),
                depth: work.message_count(),
                consumers: work.consumer_count(),
                dead_letters: dead.message_count(),
            });
        }
        with_timeout(channel.close(200, "done".into())).await?;
        Ok(backlogs)
    }
}
