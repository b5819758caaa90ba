//! Who is who. This service owns merchants with their settings and endpoints, API clients, the
//! keys that sign tokens, and what was revoked.
//!
//! It says `merchant.changed.v1` and `token.revoked.v1`, and hears nothing. It promises: a secret
//! is shown once and kept only as a hash or sealed; every change is recorded with its author, in
//! the transaction that makes it; a granted token can be checked by anyone without asking here.

mod bootstrap;
mod brute_force;
mod clients;
mod credentials;
mod error;
mod http;
mod keyring;
mod merchants;
mod revocations;
mod routes;
mod schema;
mod secrets;
mod settings;
mod store;
mod tokens;

use std::sync::Arc;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use messaging::{Broker, Outbox, Topology};
use platform::{Clock, Process, Service, database::Pool, identity::Verifier, sealing::Sealer};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{
    brute_force::BruteForce, clients::KnownClients, keyring::Keyring,
    revocations::follow_revocations, settings::Settings,
};

const NAME: &str = "auth";
const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/auth");

/// The running service.
pub struct App {
    pool: Pool,
    clock: Clock,
    outbox: Outbox,
    keyring: Arc<Keyring>,
    verifier: Arc<Verifier>,
    sealer: Arc<Sealer>,
    clients: KnownClients,
    brute_force: BruteForce,
    settings: Settings,
}

impl Service for App {
    const NAME: &'static str = NAME;
    const ABOUT: &'static str = "Tokens, merchants, API clients and endpoint settings";
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::routes(config);
    }

    async fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let sealer = Arc::new(Sealer::new(&settings.sealing)?);
        let verifier = Arc::new(Verifier::new(&settings.tokens.issuer, process.clock.clone()));
        let topology = Topology::backhaul(&settings.broker.namespace);
        let broker = Broker::start(NAME, process, settings.broker.clone(), topology);
        let outbox = broker.start_relay(NAME, process);
        let keyring = Keyring::start(process, &settings.keys, sealer.clone(), verifier.clone());
        follow_revocations(process, verifier.clone());
        bootstrap::start(process, &settings.bootstrap);
        let brute_force = BruteForce::new(&settings.brute_force, process.clock.clone());
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            outbox,
            keyring,
            verifier: verifier.clone(),
            sealer,
            clients: KnownClients::new(),
            brute_force,
            settings,
        };
        Ok((app, verifier))
    }
}
