//! The gateway that merchants publish orders to.
//!
//! The service owns the newest snapshot of every order, every refund ever published, and the numbers of
//! orders that merchants sent. It consumes
//! `merchant.changed` and `token.revoked`, and publishes `order.stored`.
//!
//! An order that got a 200 response is stored, and if it changed, its event is in the outbox. A
//! message is stored as a whole or not at all. Memory use is bounded by the settings.

mod activity;
mod http;
mod merchant_activity;
mod orders;
mod publishing;
mod rejected_order;
mod reset;
mod routes;
mod store;
mod stored_order;
mod summary;
mod write_batch;
mod write_queue;
mod writer;

use std::sync::Arc;

use actix_web::web;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use merchants::Merchants;
use messaging::{Backlog, Broker, Outbox, Topology};
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::{Clock, Process, Service, telemetry};
use serde::Deserialize;
use utoipa_actix_web::service_config::ServiceConfig;

use activity::Activity;
use write_batch::Publication;
use write_queue::{QueueLimits, WriteQueue};
use writer::{PublishResult, Writer};

/// The tables of this service.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/order-intake");

/// The order-intake service.
pub struct App {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    outbox: Outbox,
    backlog: Backlog,
    activity: Arc<Activity>,
    write_queue: Arc<WriteQueue<Publication, PublishResult>>,
}

/// Settings of this service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    broker: messaging::Settings,
    identity: identity::Settings,
    storing: Storing,
}

/// `[storing]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Storing {
    max_batch_orders: usize,
    max_queued_orders: usize,
}

impl Service for App {
    const NAME: &'static str = "order-intake";
    const ABOUT: &'static str = "Stores the orders that merchants publish";
    const TAGS: &'static [(&'static str, &'static str)] =
        &[messaging::TAG, ("orders", "Orders that merchants publish")];
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, merchants::MIGRATIONS, MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::configure(config);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.backlog.clone()));
    }

    async fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, identity, storing } = settings;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.follow(&identity, &process.tasks)?;
        let topology = Topology::backhaul(&broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants: Merchants::start(Self::NAME, process, &broker, &verifier),
            outbox: broker.start_relay(Self::NAME, process),
            backlog: Backlog::new(Self::NAME, process, &broker, &[]),
            activity: Arc::default(),
            write_queue: Arc::new(WriteQueue::new(QueueLimits {
                max_batch: storing.max_batch_orders,
                max_queued: storing.max_queued_orders,
            })),
        };
        let writer = Writer::new(app.pool.clone(), app.outbox.clone(), app.write_queue.clone());
        process.tasks.spawn("writer", |stop| writer.run(stop));
        let (activity, pool) = (app.activity.clone(), app.pool.clone());
        process.tasks.spawn("order activity", |stop| activity.run(pool, stop));
        app.export_queue_depth();
        Ok((app, verifier))
    }
}

impl App {
    fn export_queue_depth(&self) {
        let queue = self.write_queue.clone();
        telemetry::meter()
            .u64_observable_gauge("order_write_queue_depth")
            .with_description("Orders queued for a transaction; a large order counts as several")
            .with_callback(move |gauge| {
                gauge.observe(queue.depth().try_into().unwrap_or(u64::MAX), &[]);
            })
            .build();
    }
}

#[cfg(test)]
mod tests;
