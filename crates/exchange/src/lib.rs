//! The service that offers variants and places exchange orders.
//!
//! It owns every confirmed exchange and the exchange orders placed for them. It hears
//! `return.confirmed`, `merchant.changed` and `token.revoked`; it says `exchange.placed` and
//! `exchange.failed`; it asks merchants for variants and delivers exchange orders to them.
//!
//! It promises: one exchange order for each original order of a merchant, whoever confirms and
//! however often. Whoever does not get an order is told so. A shopper never waits longer for
//! variants than the budget says, and a merchant that does not answer breaks nothing.

mod confirmations;
mod endings;
mod error;
mod http;
mod offers;
mod placing;
mod routes;
mod settings;
mod store;

use std::sync::Arc;

use actix_web::web;
use delivery::Deliveries;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Topology, consume};
use platform::database::Pool;
use platform::identity::Verifier;
use platform::sealing::Sealer;
use platform::{Process, Service};
use tokio::sync::{Notify, Semaphore};
use utoipa_actix_web::service_config::ServiceConfig;

use confirmations::Confirmations;
use endings::Endings;
use offers::Offers;
use placing::{DECIDING, Placer};
use settings::Settings;

/// The tables of this service.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/exchange");

/// The service.
pub struct App {
    pool: Pool,
    merchants: Arc<Merchants>,
    deliveries: Deliveries,
    endings: Endings,
    offers: Arc<Offers>,
}

impl Service for App {
    const NAME: &'static str = "exchange";
    const ABOUT: &'static str = "Offers variants to shoppers and places exchange orders";
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, delivery::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, merchants::MIGRATIONS, delivery::MIGRATIONS, MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::configure(config);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.deliveries.clone()));
    }

    async fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Settings { broker, identity, sealing, delivery, variants, placing } = settings;
        let sealer = Arc::new(Sealer::new(&sealing)?);
        let verifier = Arc::new(Verifier::new(&identity.issuer, process.clock.clone()));
        verifier.follow(&identity, &process.tasks)?;
        let topology = Topology::backhaul(&broker.namespace);
        let broker = Broker::start(Self::NAME, process, broker, topology);
        let merchants = Merchants::start(Self::NAME, process, &broker, &verifier);
        let outbox = broker.start_relay(Self::NAME, process);
        let endings = Endings { outbox: outbox.clone(), clock: process.clock.clone() };
        let deliveries = Deliveries::start_before(
            Arc::new(endings.clone()),
            Self::NAME,
            process,
            (&broker, &merchants, &sealer),
            &[MessageKind::ExchangeOrder],
            delivery,
        )?;
        let offers = Arc::new(Offers::new(deliveries.clone(), process.clock.clone(), variants));
        let heard = Arc::new(Notify::new());
        let placer = Placer {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants: merchants.clone(),
            offers: offers.clone(),
            deliveries: deliveries.clone(),
            outbox,
            settings: placing,
            heard: heard.clone(),
            deciding: Semaphore::new(DECIDING),
        };
        process.tasks.spawn("placer", |stop| placer.run(stop));
        let clock = process.clock.clone();
        consume(&broker, Self::NAME, process, Confirmations { clock, heard });
        let pool = process.pool.clone();
        Ok((Self { pool, merchants, deliveries, endings, offers }, verifier))
    }
}

#[cfg(test)]
mod tests;
