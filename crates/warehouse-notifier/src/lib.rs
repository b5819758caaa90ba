//! Tells merchants what happens in the warehouse.
//!
//! It owns what merchants announce (inbound ASNs), what arrived of it (receipts), what leaves
//! (outbound shipments), and what was told of drop shipments. It hears `merchant.changed` and
//! `token.revoked`, and says `unit.received` of units that belong to an RMA.
//!
//! It promises: what was answered with 201 is stored, and its messages are on the way, each once,
//! however often the request comes. A request is stored whole or not at all.

mod drop_shipments;
mod error;
mod http;
mod inbound;
mod outbound;
mod receipts;
mod request;
mod routes;
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
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/warehouse-notifier");

/// What this service delivers.
const KINDS: [MessageKind; 5] = [
    MessageKind::OutboundAsn,
    MessageKind::InventoryReceipt,
    MessageKind::DropShipmentConfirmation,
    MessageKind::DropShipmentCancellation,
    MessageKind::DropShipmentPartialCancellation,
];

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
    identity: identity::Settings,
    sealing: sealing::Settings,
    delivery: delivery::Settings,
    idempotency: idempotency::Settings,
}

impl Service for App {
    const NAME: &'static str = "warehouse-notifier";
    const ABOUT: &'static str = "Tells merchants what happens in the warehouse";
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
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.deliveries.clone()));
    }

    async fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, identity, sealing, delivery, idempotency: keys } = settings;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.follow(&identity, &process.tasks)?;
        let sealer = Arc::new(Sealer::new(&sealing)?);
        let topology = Topology::backhaul(&broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let deliveries =
            Deliveries::start(Self::NAME, process, &broker, &merchants, &sealer, &KINDS, delivery)?;
        idempotency::delete_expired(process, &keys);
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants,
            outbox: broker.start_relay(Self::NAME, process),
            deliveries,
        };
        Ok((app, verifier))
    }
}

#[cfg(test)]
mod tests;
