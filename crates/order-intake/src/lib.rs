//! The gateway merchants publish orders to.
//!
//! It owns the newest snapshot of every order, every refund ever seen, and the notes of snapshots
//! that came too late. It hears `merchant.changed` and `token.revoked`, and says `order.stored`.
//!
//! It promises: an order answered with 200 is stored, and if it said something new, its event is
//! on the way. A message is stored whole or not at all. Whatever is sent, the answer is a clear
//! one, and whatever the load, memory stays within what the settings say.

mod books;
mod group;
mod http;
mod routes;
mod store;
mod writer;

use std::sync::Arc;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use merchants::Merchants;
use messaging::{Broker, Outbox, Topology};
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::{Clock, Process, Service, telemetry};
use serde::Deserialize;
use utoipa_actix_web::service_config::ServiceConfig;

use books::Publication;
use group::{Bounds, Group};
use writer::{Answer, Writer};

/// The tables of this service.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/order-intake");

/// The service.
pub struct App {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    outbox: Outbox,
    group: Arc<Group<Publication, Answer>>,
}

/// The sections of this service.
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
    group_orders: usize,
    waiting_orders: usize,
}

impl Service for App {
    const NAME: &'static str = "order-intake";
    const ABOUT: &'static str = "Takes the orders that merchants publish";
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, merchants::MIGRATIONS, MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::configure(config);
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
            group: Arc::new(Group::new(Bounds {
                together: storing.group_orders,
                waiting: storing.waiting_orders,
            })),
        };
        let writer = Writer::new(app.pool.clone(), app.outbox.clone(), app.group.clone());
        process.tasks.spawn("writer", |stop| writer.run(stop));
        app.show_waiting();
        Ok((app, verifier))
    }
}

impl App {
    fn show_waiting(&self) {
        let group = self.group.clone();
        telemetry::meter()
            .u64_observable_gauge("orders_waiting")
            .with_description("Orders that wait for a transaction; a large one counts as several")
            .with_callback(move |gauge| {
                gauge.observe(group.waiting().try_into().unwrap_or(u64::MAX), &[]);
            })
            .build();
    }
}

#[cfg(test)]
mod tests;
