//! The rma-engine service owns returns, the shipped units of orders, the timeline of each return
//! and the list of discrepancies. It consumes `order.stored.v1`, `order.stored_in_bulk.v1`, `unit.received.v1`,
//! `exchange.placed.v1`, `exchange.failed.v1`, `exchange.undeliverable.v1`, `shopper.erased.v1`,
//! `delivery.dead.v1`, `endpoint.health_changed.v1`, `endpoint.paused.v1`, `merchant.changed.v1` and
//! `token.revoked.v1`, publishes `return.confirmed.v1`, `exchange.renamed.v1`, `returns.erased.v1`,
//! `shopper.erasure_confirmed.v1`, `delivery.dead.v1` and `endpoint.health_changed.v1`, and sends merchants an RMA
//! message for each change of a return that they can see, and notices about their own endpoints, also by mail.
//! Shoppers prove here that they know an order, then return its units, and get mails about their returns.
//!
//! It guarantees that a unit is in at most one return, also under concurrent requests; that
//! merchants receive each committed change once, in order, and no uncommitted change; and that
//! events that arrive twice, late or out of order have no wrong effect. `domain::returns` makes the
//! decisions; this crate loads, saves and announces them in one transaction.

mod blocking;
mod consumers;
mod deadlines;
mod discrepancies;
mod erasing;
mod error;
mod exchanges;
mod http;
mod mails;
mod messages;
mod notices;
mod orders;
mod policy_previews;
mod projection;
mod quotes;
mod refunds;
mod return_changes;
mod returns;
mod routes;
mod settings;
mod shipped_units;
mod shoppers;
mod store;

use std::sync::Arc;

use actix_web::web;
use delivery::{Deliveries, Mailer};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Backlog, Broker, Outbox, Topology};
use platform::batching::Batches;
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::sealing::Sealer;
use platform::shopper_proof::ProofKeys;
use platform::{Clock, Process, Service, idempotency};
use utoipa::openapi::OpenApi;
use utoipa_actix_web::service_config::ServiceConfig;

use messages::Messages;
use policy_previews::Previews;
use returns::new_return_batches::ReturnHandler;
use returns::report_batches::ReportHandler;
pub use settings::Settings;

/// Migrations of this service's tables.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/rma-engine");

pub struct App {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    outbox: Outbox,
    backlog: Backlog,
    messages: Messages,
    new_returns: Arc<Batches<ReturnHandler>>,
    reports: Arc<Batches<ReportHandler>>,
    proof_keys: Arc<ProofKeys>,
    lookups: settings::Lookups,
    portal: settings::WebPages,
    previews: Previews,
}

impl Service for App {
    const NAME: &'static str = "rma-engine";
    const ABOUT: &'static str = "Manages returns and sends RMA messages to merchants";
    const TAGS: &'static [(&'static str, &'static str)] = &[
        delivery::TAG,
        messaging::TAG,
        ("shoppers", "Portals of merchants, and proofs that shoppers know their orders"),
        ("discrepancies", "Facts that contradict each other, or that a person must look at"),
        ("mails", "Previews and tests of the mails to shoppers"),
        ("parcels", "Reports of carriers about parcels"),
        ("receiving", "Findings of the warehouse about returned units"),
        ("returns", "Returns and the units that can be returned"),
    ];
    const DEFAULTS: &'static [&'static str] = &[
        messaging::DEFAULTS,
        identity::DEFAULTS,
        delivery::DEFAULTS,
        delivery::MAIL_DEFAULTS,
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
        delivery::routes(config);
    }

    fn webhooks(document: &mut OpenApi) {
        delivery::webhook::<domain::returns::RmaMessage>(document, MessageKind::Rma);
        delivery::webhook::<domain::notice::Notice>(document, MessageKind::Notice);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.messages.deliveries.clone()));
        app.app_data(web::Data::new(self.backlog.clone()));
        app.app_data(web::Data::from(self.proof_keys.clone()));
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, delivery, identity, idempotency: keys, .. } = settings;
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.start_refreshing_keys(&identity, &process.tasks)?;
        let sealer = Arc::new(Sealer::new(&settings.sealing)?);
        let kinds = [MessageKind::Rma, MessageKind::Notice, MessageKind::Mail];
        let topology = Topology::of_service(Self::NAME, &kinds, &broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let outbox = broker.start_relay(Self::NAME, process);
        let backlog = Backlog::new(Self::NAME, process, &broker, &kinds);
        let mailer = Mailer::new(&settings.mail)?;
        let shared = (&broker, &merchants, &sealer);
        let deliveries =
            Deliveries::start_with_mail(mailer, &outbox, process, shared, &kinds, delivery)?;
        let messages = Messages::new(deliveries, &settings.portal);
        let new_returns = ReturnHandler {
            clock: process.clock.clone(),
            outbox: outbox.clone(),
            messages: messages.clone(),
        };
        let reports = ReportHandler { clock: process.clock.clone(), messages: messages.clone() };
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants,
            outbox,
            backlog,
            messages,
            new_returns: Batches::start("new returns", process, new_returns),
            reports: Batches::start("carrier reports", process, reports),
            proof_keys: Arc::new(ProofKeys::new(&settings.shopper, process.clock.clone())?),
            lookups: settings.lookups,
            portal: settings.portal,
            previews: Previews::default(),
        };
        consumers::start(&app, &broker, process);
        deadlines::start(&app, process, &settings.deadlines);
        notices::start(&app, process, &settings.console, settings.deadlines.poll_interval);
        idempotency::delete_expired(process, &keys);
        shoppers::lookups::start_clean_up(process);
        Ok((app, verifier))
    }
}

#[cfg(test)]
mod tests;
