//! The auth service owns merchants with their settings and endpoints, API clients, signing keys and
//! revocations. It publishes `merchant.changed.v1` and `token.revoked.v1`, and consumes no events.
//!
//! It guarantees that a secret is returned once and stored hashed or encrypted, that every change is
//! written to the audit log in its own transaction, and that any service can verify a token offline.

mod audit;
mod bootstrap;
mod brute_force;
mod client_cache;
mod clients;
mod credentials;
mod endpoints;
mod error;
mod http;
mod merchants;
mod revocations;
mod routes;
mod schema;
mod settings;
mod signing_keys;
mod store;
mod tokens;

use std::sync::Arc;

use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::merchant::guard::Guard;
use messaging::{Broker, Outbox, Topology};
use opentelemetry::metrics::Counter;
use platform::{
    Clock, Process, Service, database::Pool, identity::Verifier, sealing::Sealer, telemetry,
};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{
    brute_force::BruteForceGuard, client_cache::ClientCache, settings::Settings,
    signing_keys::SigningKeys,
};

const NAME: &str = "auth";
const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/auth");

/// The running service.
pub struct App {
    pool: Pool,
    clock: Clock,
    outbox: Outbox,
    signing_keys: Arc<SigningKeys>,
    verifier: Arc<Verifier>,
    sealer: Arc<Sealer>,
    client_cache: ClientCache,
    brute_force: BruteForceGuard,
    /// The rule for merchants' URLs.
    guard: Guard,
    tokens_granted: Counter<u64>,
    settings: Settings,
}

impl Service for App {
    const NAME: &'static str = NAME;
    const ABOUT: &'static str = "Tokens, merchants, API clients and endpoint settings";
    const TAGS: &'static [(&'static str, &'static str)] = &[
        ("audit", "The log of changes that operators made"),
        ("clients", "API clients and their secrets"),
        ("endpoints", "The URLs of merchants and their signing secrets"),
        ("merchants", "Merchants and their settings"),
        ("tokens", "OAuth 2.0 access tokens and signing keys"),
    ];
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
        let signing_keys =
            SigningKeys::start(process, &settings.keys, sealer.clone(), verifier.clone());
        revocations::start_polling(process, verifier.clone());
        bootstrap::start(process, &settings.bootstrap);
        let brute_force = BruteForceGuard::new(&settings.brute_force, process.clock.clone());
        let guard = Guard::new(settings.delivery.https_only, &settings.delivery.allowed_networks);
        let tokens_granted = telemetry::meter()
            .u64_counter("tokens_granted")
            .with_description("Access tokens that clients got")
            .build();
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            outbox,
            signing_keys,
            verifier: verifier.clone(),
            sealer,
            client_cache: ClientCache::new(),
            brute_force,
            guard,
            tokens_granted,
            settings,
        };
        Ok((app, verifier))
    }
}
