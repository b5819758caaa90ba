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
mod parcels;
mod projection;
mod quote;
mod receiving;
mod returns;
mod routes;
mod shelf;
mod store;

use std::sync::Arc;

use actix_web::web;
use delivery::Deliveries;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Outbox, Topology};
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::sealing::{self, Sealer};
use platform::{Clock, Process, Service, idempotency};
use serde::Deserialize;
use utoipa_actix_web::service_config::ServiceConfig;

/// The tables of this service.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/rma-engine");

/// The service.
pub struct App {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    outbox: Outbox,
    deliveries: Deliveries,
}

/// The sections of this service.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    broker: messaging::Settings,
    delivery: delivery::Settings,
    identity: identity::Settings,
    idempotency: idempotency::Settings,
    sealing: sealing::Settings,
}

impl Service for App {
    const NAME: &'static str = "rma-engine";
    const ABOUT: &'static str = "Keeps every return and tells merchants of it";
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, delivery::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![
            idempotency::MIGRATIONS,
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
    }

    async fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, delivery, identity, idempotency: keys, sealing } = settings;
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
        };
        consumers::start(&app, &broker, process);
        idempotency::delete_expired(process, &keys);
        Ok((app, verifier))
    }
}

#[cfg(test)]
mod tests;
