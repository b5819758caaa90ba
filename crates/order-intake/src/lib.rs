//! The gateway that merchants publish orders to.
//!
//! The service owns the newest snapshot of every order, every refund ever published, the numbers of
//! orders that merchants sent, and the erasures of shoppers' data. It consumes `merchant.changed.v1`,
//! `token.revoked.v1` and `shopper.erasure_confirmed.v1`, and publishes `order.stored.v1`, `order.stored_in_bulk.v1`
//! and `shopper.erased.v1`.
//!
//! An order that got a 200 response is stored, and if it changed, its event is in the outbox. A
//! message is stored as a whole or not at all. Memory use is bounded by the settings.

mod activity;
mod eraser;
mod erasure_confirmations;
mod erasure_view;
mod erasures;
mod http;
mod merchant_activity;
mod orders;
mod publishing;
mod rejected_order;
mod reset;
mod retention;
mod routes;
mod store;
mod stored_order;
mod summary;
mod write_batch;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use merchants::Merchants;
use messaging::{Backlog, Broker, Outbox, Topology, consume};
use platform::config::range::{self, CENTURY};
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::{Clock, Process, Service, idempotency, telemetry};
use serde::Deserialize;
use tokio::sync::Notify;
use utoipa_actix_web::service_config::ServiceConfig;

use activity::Activity;
use eraser::Eraser;
use erasure_confirmations::ErasureConfirmations;
use platform::batching::{JobQueue, QueueLimits};
use retention::Retention;
use write_batch::Publication;
use writer::{WriteResult, Writer};

/// The tables of this service.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/order-intake");

pub struct App {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    outbox: Outbox,
    backlog: Backlog,
    activity: Arc<Activity>,
    job_queue: Arc<JobQueue<Publication, WriteResult>>,
    new_erasures: Arc<Notify>,
}

/// Settings of this service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    broker: messaging::Settings,
    identity: identity::Settings,
    idempotency: idempotency::Settings,
    storing: Storing,
    retention: RetentionSettings,
}

/// `[storing]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Storing {
    #[serde(deserialize_with = "range::number::<1, 100_000, _, _>")]
    max_batch_orders: usize,
    #[serde(deserialize_with = "range::number::<1, 10_000_000, _, _>")]
    max_queued_orders: usize,
}

/// `[retention]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionSettings {
    #[serde(deserialize_with = "range::time::<0, CENTURY, _>")]
    personal_data: Duration,
}

impl Service for App {
    const NAME: &'static str = "order-intake";
    const ABOUT: &'static str = "Stores the orders that merchants publish";
    const TAGS: &'static [(&'static str, &'static str)] = &[
        messaging::TAG,
        ("erasures", "Erasure of shoppers' personal data"),
        ("orders", "Orders that merchants publish"),
    ];
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, identity::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, merchants::MIGRATIONS, idempotency::MIGRATIONS, MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::configure(config);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.backlog.clone()));
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, identity, idempotency: keys, storing, retention } = settings;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.start_refreshing_keys(&identity, &process.tasks)?;
        let topology = Topology::of_service(Self::NAME, &[], &broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants: Merchants::start(Self::NAME, process, &broker, &verifier),
            outbox: broker.start_relay(Self::NAME, process),
            backlog: Backlog::new(Self::NAME, process, &broker, &[]),
            activity: Arc::default(),
            job_queue: Arc::new(JobQueue::new(QueueLimits {
                max_batch: storing.max_batch_orders,
                max_queued: storing.max_queued_orders,
            })),
            new_erasures: Arc::default(),
        };
        let writer = Writer::new(app.pool.clone(), app.outbox.clone(), app.job_queue.clone());
        process.tasks.spawn("writer", |stop| writer.run(stop));
        let activity = app.activity.clone();
        let pool = app.pool.clone();
        process.tasks.spawn("order activity", |stop| activity.run(pool, stop));
        app.start_erasing(process, &broker, retention.personal_data);
        idempotency::delete_expired(process, &keys);
        app.export_queue_depth();
        Ok((app, verifier))
    }
}

impl App {
    fn start_erasing(&self, process: &Process, broker: &Broker, retention: Duration) {
        let pool = &self.pool;
        let clock = &self.clock;
        let wake = &self.new_erasures;
        let eraser = Eraser {
            pool: pool.clone(),
            clock: clock.clone(),
            outbox: self.outbox.clone(),
            wake: wake.clone(),
        };
        process.tasks.spawn("eraser", |stop| eraser.run(stop));
        consume(broker, Self::NAME, process, ErasureConfirmations { clock: clock.clone() });
        if !retention.is_zero() {
            let retention = Retention {
                pool: pool.clone(),
                clock: clock.clone(),
                retention,
                wake: wake.clone(),
            };
            process.tasks.spawn("retention", |stop| retention.run(stop));
        }
    }

    fn export_queue_depth(&self) {
        let queue = self.job_queue.clone();
        telemetry::meter()
            .u64_observable_gauge("order_write_queue_depth")
            .with_description("Orders queued for a transaction; a large order counts as several")
            .with_callback(move |gauge| {
                gauge.observe(queue.queued_weight().try_into().unwrap_or(u64::MAX), &[]);
            })
            .build();
    }
}

#[cfg(test)]
mod tests;
