//! The exchange service offers variants to shoppers and places exchange orders at merchants.
//!
//! It owns confirmed exchanges and their exchange orders. It consumes `return.confirmed.v1`, `exchange.renamed.v1`,
//! `returns.erased.v1`, `merchant.changed.v1` and `token.revoked.v1`, publishes `exchange.placed.v1`,
//! `exchange.failed.v1`, `exchange.undeliverable.v1`, `shopper.erasure_confirmed.v1`, `delivery.dead.v1` and
//! `endpoint.health_changed.v1`, requests variants from merchants and delivers exchange orders to them.
//!
//! It guarantees at most one exchange order for each original order of a merchant, and an event for
//! every confirmed return that gets none. A variant lookup takes no longer than `variants.timeout`,
//! even if the merchant does not respond.

mod confirmations;
mod erasing;
mod error;
mod exchange_orders;
mod http;
mod order_settlement;
mod placing;
mod renames;
mod routes;
mod settings;
mod store;
mod variant_cache;

use std::sync::Arc;

use actix_web::web;
use delivery::Deliveries;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Backlog, Broker, Topology, consume, remove_erased_events};
use platform::database::Pool;
use platform::identity::{self, Verifier};
use platform::sealing::Sealer;
use platform::shopper_proof::ProofKeys;
use platform::{Process, Service, idempotency};
use tokio::sync::{Notify, Semaphore};
use utoipa::openapi::OpenApi;
use utoipa_actix_web::service_config::ServiceConfig;

use confirmations::ConfirmedReturns;
use erasing::{ErasedConfirmations, Erasures};
use order_settlement::OrderSettlement;
use placing::{MAX_CONCURRENT_DECISIONS, Placer};
use renames::Renames;
use settings::Settings;
use variant_cache::VariantCache;

/// Migrations of this service's tables.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/exchange");

/// The running service.
pub struct App {
    pool: Pool,
    merchants: Arc<Merchants>,
    deliveries: Deliveries,
    backlog: Backlog,
    order_settlement: OrderSettlement,
    variant_cache: Arc<VariantCache>,
    proof_keys: Arc<ProofKeys>,
}

impl Service for App {
    const NAME: &'static str = "exchange";
    const ABOUT: &'static str = "Offers variants to shoppers and places exchange orders";
    const TAGS: &'static [(&'static str, &'static str)] = &[
        delivery::TAG,
        messaging::TAG,
        ("exchange orders", "Orders for the units that shoppers get in exchange"),
        ("variants", "Variants that shoppers can choose"),
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
            messaging::MIGRATIONS,
            merchants::MIGRATIONS,
            delivery::MIGRATIONS,
            idempotency::MIGRATIONS,
            MIGRATIONS,
        ]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::configure(config);
    }

    fn webhooks(document: &mut OpenApi) {
        delivery::webhook::<domain::exchange::ExchangeOrder>(document, MessageKind::ExchangeOrder);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.deliveries.clone()));
        app.app_data(web::Data::new(self.backlog.clone()));
        app.app_data(web::Data::from(self.proof_keys.clone()));
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, identity, sealing, shopper, delivery, idempotency: keys, .. } =
            settings;
        let Settings { variants, placing, .. } = settings;
        let sealer = Arc::new(Sealer::new(&sealing)?);
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.start_refreshing_keys(&identity, &process.tasks)?;
        let kinds = [MessageKind::ExchangeOrder];
        let topology = Topology::of_service(Self::NAME, &kinds, &broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let outbox = broker.start_relay(Self::NAME, process);
        let backlog = Backlog::new(Self::NAME, process, &broker, &kinds);
        let order_settlement =
            OrderSettlement { outbox: outbox.clone(), clock: process.clock.clone() };
        let deliveries = Deliveries::start_observed(
            Arc::new(order_settlement.clone()),
            &outbox,
            process,
            (&broker, &merchants, &sealer),
            &kinds,
            delivery,
        )?;
        let variant_cache =
            Arc::new(VariantCache::new(deliveries.clone(), process.clock.clone(), variants));
        let new_confirmations = Arc::new(Notify::new());
        let placer = Placer {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants: merchants.clone(),
            variant_cache: variant_cache.clone(),
            deliveries: deliveries.clone(),
            outbox: outbox.clone(),
            settings: placing,
            new_confirmations: new_confirmations.clone(),
            decision_permits: Semaphore::new(MAX_CONCURRENT_DECISIONS),
        };
        process.tasks.spawn("placer", |stop| placer.run(stop));
        let clock = process.clock.clone();
        consume(&broker, Self::NAME, process, ConfirmedReturns { clock, new_confirmations });
        consume(&broker, Self::NAME, process, Renames);
        consume(&broker, Self::NAME, process, Erasures { outbox, clock: process.clock.clone() });
        remove_erased_events(&broker, Self::NAME, process, ErasedConfirmations);
        idempotency::delete_expired(process, &keys);
        let pool = process.pool.clone();
        let proof_keys = Arc::new(ProofKeys::new(&shopper, process.clock.clone())?);
        let app = Self {
            pool,
            merchants,
            deliveries,
            backlog,
            order_settlement,
            variant_cache,
            proof_keys,
        };
        Ok((app, verifier))
    }
}

#[cfg(test)]
mod tests;
