//! Every return, unit by unit.
//!
//! It owns the ledger of units that shipped, the returns, and the record of all that happened to
//! them. It hears `order.stored`, `unit.received`, `exchange.placed`, `exchange.failed`,
//! `merchant.changed` and `token.revoked`, says `return.confirmed`, and tells merchants of every
//! change of a return in an RMA message.
//!
//! It promises: a unit is in one return at most, also under parallel requests; each change is told
//! once, in order, and nothing is told that was not committed; whatever arrives twice, late or out
//! of order changes nothing that it should not. What is decided is decided in `domain::returns`;
//! here it is loaded, saved and announced, in one transaction.

mod chronicle;
mod consumers;
mod error;
mod exchanges;
mod http;
mod ledger;
mod once;
mod parcels;
mod projection;
mod quote;
mod receiving;
mod returns;
mod routes;
mod shelf;
mod store;

use std::sync::Arc;
use std::time::Duration;

use actix_web::web;
use delivery::Deliveries;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Outbox, Topology};
use platform::database::Pool;
use platform::http::MemoryBudget;
use platform::identity::{self, Verifier};
use platform::sealing::{self, Sealer};
use platform::{Clock, Process, Service, idempotency as requests};
use serde::Deserialize;
use utoipa_actix_web::service_config::ServiceConfig;

/// The tables of this service.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/rma-engine");

/// A body and what is made of it, as a multiple of the body: itself, its copy beside the list of
/// its values, and what is hashed of them, each at its longest.
const COPIES: usize = 20;

/// The service.
pub struct App {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    outbox: Outbox,
    deliveries: Deliveries,
    rooms: MemoryBudget,
}

/// The sections of this service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    broker: messaging::Settings,
    delivery: delivery::Settings,
    identity: identity::Settings,
    bodies: Bodies,
    idempotency: Idempotency,
    sealing: sealing::Settings,
}

/// `[bodies]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bodies {
    bytes_in_flight: usize,
}

/// `[idempotency]`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Idempotency {
    #[serde(with = "humantime_serde")]
    retention: Duration,
}

impl Service for App {
    const NAME: &'static str = "rma-engine";
    const ABOUT: &'static str = "Keeps every return and tells merchants of it";
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, delivery::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![
            requests::MIGRATIONS,
            messaging::MIGRATIONS,
            merchants::MIGRATIONS,
            delivery::MIGRATIONS,
            MIGRATIONS,
        ]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::configure(config);
        delivery::routes(config);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.deliveries.clone()));
        app.app_data(web::Data::new(self.rooms.clone()));
    }

    async fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, delivery, identity, bodies, idempotency, sealing } = settings;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.follow(&identity, &process.tasks)?;
        let sealer = Arc::new(Sealer::new(&sealing)?);
        let topology = Topology::backhaul(&broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let outbox = broker.start_relay(Self::NAME, process);
        let kinds = [MessageKind::Rma];
        let deliveries =
            Deliveries::start(Self::NAME, process, &broker, &merchants, &sealer, &kinds, delivery)?;
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants,
            outbox,
            deliveries,
            rooms: MemoryBudget::new(bodies.bytes_in_flight, process.http.max_body_bytes, COPIES),
        };
        consumers::start(&app, &broker, process);
        requests::forget_answers(process, idempotency.retention);
        Ok((app, verifier))
    }
}

#[cfg(test)]
mod tests;
