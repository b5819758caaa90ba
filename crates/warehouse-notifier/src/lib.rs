//! The warehouse notifier sends merchants messages about shipments and receipts in a warehouse. It owns
//! inbound ASNs, receipts, outbound shipments and drop shipments. It consumes `merchant.changed.v1`,
//! `token.revoked.v1` and `returns.erased.v1`, and publishes `unit.received.v1` for units that belong to an
//! RMA, `shopper.erasure_confirmed.v1`, `delivery.dead.v1` and `endpoint.health_changed.v1`.
//!
//! It guarantees that a request is stored as a whole or not at all, that a 201 response means that the
//! request is stored and its messages are enqueued, and that a repeated request enqueues no message twice.

mod drop_shipments;
mod erasing;
mod error;
mod expected_units;
mod http;
mod inbound;
mod list_position;
mod new_units;
mod outbound;
mod receipt_batches;
mod receipts;
mod record_keys;
mod records;
mod request;
mod routes;
mod store;

use std::sync::Arc;

use actix_web::web;
use delivery::Deliveries;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Backlog, Broker, Topology, consume};
use platform::batching::Batches;
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::sealing::{self, Sealer};
use platform::{Clock, Process, Service, idempotency};
use serde::Deserialize;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::service_config::ServiceConfig;

use erasing::Erasures;
use receipt_batches::ReceiptHandler;

/// Creates the tables of this service.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/warehouse-notifier");

/// Kinds of messages that this service delivers.
const KINDS: [MessageKind; 5] = [
    MessageKind::OutboundAsn,
    MessageKind::InventoryReceipt,
    MessageKind::DropShipmentConfirmation,
    MessageKind::DropShipmentCancellation,
    MessageKind::DropShipmentPartialCancellation,
];

/// State that all handlers share.
pub struct App {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    backlog: Backlog,
    deliveries: Deliveries,
    receipts: Arc<Batches<ReceiptHandler>>,
}

/// The settings of this service, by section.
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
    const ABOUT: &'static str = "Sends merchants messages about shipments and receipts";
    const TAGS: &'static [(&'static str, &'static str)] = &[
        delivery::TAG,
        messaging::TAG,
        ("drop shipments", "Orders that a warehouse ships for a merchant"),
        ("inbound ASNs", "Shipments that a warehouse expects"),
        ("outbound shipments", "Shipments that leave a warehouse"),
        ("receipts", "Units that arrive in a warehouse"),
        ("records", "Search for ASNs, shipments and drop shipments"),
    ];
    const DEFAULTS: &'static [&'static str] = &[
        messaging::DEFAULTS,
        identity::DEFAULTS,
        delivery::DEFAULTS,
        include_str!("../default.toml"),
    ];
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

    fn webhooks(document: &mut OpenApi) {
        use domain::warehouse as message;
        delivery::webhook::<message::OutboundAsn>(document, MessageKind::OutboundAsn);
        delivery::webhook::<message::InventoryReceipt>(document, MessageKind::InventoryReceipt);
        delivery::webhook::<message::DropShipmentConfirmation>(
            document,
            MessageKind::DropShipmentConfirmation,
        );
        delivery::webhook::<message::DropShipmentCancellation>(
            document,
            MessageKind::DropShipmentCancellation,
        );
        delivery::webhook::<message::DropShipmentPartialCancellation>(
            document,
            MessageKind::DropShipmentPartialCancellation,
        );
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.deliveries.clone()));
        app.app_data(web::Data::new(self.backlog.clone()));
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, identity, sealing, delivery, idempotency: keys } = settings;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.start_refreshing_keys(&identity, &process.tasks)?;
        let sealer = Arc::new(Sealer::new(&sealing)?);
        let topology = Topology::of_service(Self::NAME, &KINDS, &broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let outbox = broker.start_relay(Self::NAME, process);
        let backlog = Backlog::new(Self::NAME, process, &broker, &KINDS);
        let deliveries =
            Deliveries::start(&outbox, process, &broker, &merchants, &sealer, &KINDS, delivery)?;
        idempotency::delete_expired(process, &keys);
        let erasures = Erasures { outbox: outbox.clone(), clock: process.clock.clone() };
        consume(&broker, Self::NAME, process, erasures);
        let receipts =
            ReceiptHandler { clock: process.clock.clone(), outbox, deliveries: deliveries.clone() };
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants,
            backlog,
            deliveries,
            receipts: Batches::start("receipts", process, receipts),
        };
        Ok((app, verifier))
    }
}

#[cfg(test)]
mod tests;
