//! The auth service owns merchants with their settings and endpoints, API clients, people with their
//! invitations and sessions, signing keys and revocations. It publishes `merchant.changed.v1`, `endpoint.paused.v1`
//! and `token.revoked.v1`, and consumes no events.
//!
//! It guarantees that a secret is returned once and stored hashed or encrypted, that every change is
//! written to the audit log in its own transaction, and that any service can verify a token offline.

mod account;
mod audit;
mod bootstrap;
mod browser;
mod brute_force;
mod client_cache;
mod clients;
mod codes;
mod credentials;
mod email;
mod ended_sessions;
mod endpoints;
mod error;
mod http;
mod invitations;
mod merchants;
mod oidc;
mod passwords;
mod people;
mod policy_versions;
mod policy_warnings;
mod provider_error;
mod recovery_codes;
mod revocations;
mod rights;
mod roles;
mod routes;
mod schema;
mod sealed_response;
mod session_tokens;
mod sessions;
mod settings;
mod sign_in;
mod signing_keys;
mod store;
mod token_lifetimes;
mod tokens;
mod totp;
mod warehouses;

use std::sync::Arc;

use actix_web::web;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::merchant::guard::Guard;
use messaging::{Backlog, Broker, Outbox, Topology};
use opentelemetry::metrics::Counter;
use platform::{
    Clock, Process, Service, database::Pool, idempotency, identity::Verifier, limits::PerMinute,
    sealing::Sealer, telemetry,
};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{
    brute_force::BruteForceGuard, client_cache::ClientCache, oidc::Oidc, passwords::Passwords,
    policy_warnings::PolicyWarnings, session_tokens::SessionTokens, settings::Settings,
    signing_keys::SigningKeys,
};

const NAME: &str = "auth";
const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/auth");

/// The running service.
pub struct App {
    pool: Pool,
    clock: Clock,
    outbox: Outbox,
    backlog: Backlog,
    signing_keys: Arc<SigningKeys>,
    verifier: Arc<Verifier>,
    sealer: Arc<Sealer>,
    client_cache: ClientCache,
    brute_force: BruteForceGuard,
    /// The tokens that each client revoked.
    revocation_limit: PerMinute<String>,
    passwords: Passwords,
    session_tokens: SessionTokens,
    policy_warnings: PolicyWarnings,
    /// The OpenID provider, if there is one.
    oidc: Option<Oidc>,
    /// The rule for merchants' URLs.
    guard: Guard,
    tokens_granted: Counter<u64>,
    settings: Settings,
}

impl Service for App {
    const NAME: &'static str = NAME;
    const ABOUT: &'static str = "Tokens, merchants, API clients, people and endpoint settings";
    const TAGS: &'static [(&'static str, &'static str)] = &[
        messaging::TAG,
        ("audit", "The log of changes that people and clients made"),
        ("clients", "API clients and their secrets"),
        ("endpoints", "The URLs of merchants and their signing secrets"),
        ("warehouses", "The warehouses of merchants, which fill reports of shipments"),
        ("merchants", "Merchants and their settings"),
        ("people", "People and their invitations"),
        ("sessions", "Sign-in, sessions and passwords of people"),
        ("tokens", "OAuth 2.0 access tokens and signing keys"),
    ];
    const DEFAULTS: &'static [&'static str] =
        &[messaging::DEFAULTS, include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        vec![messaging::MIGRATIONS, idempotency::MIGRATIONS, MIGRATIONS]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        routes::routes(config);
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        app.app_data(web::Data::new(self.backlog.clone()));
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let sealer = Arc::new(Sealer::new(&settings.sealing)?);
        let verifier = Arc::new(Verifier::new(&settings.tokens.issuer, process.clock.clone()));
        let topology = Topology::of_service(NAME, &[], &settings.broker.namespace);
        let broker = Broker::start(NAME, process, settings.broker.clone(), topology);
        let outbox = broker.start_relay(NAME, process);
        let backlog = Backlog::new(NAME, process, &broker, &[]);
        let signing_keys =
            SigningKeys::start(process, &settings.keys, sealer.clone(), verifier.clone());
        revocations::start_polling(process, verifier.clone());
        sessions::start_clean_up(process);
        bootstrap::start(process, &settings.bootstrap);
        idempotency::delete_expired(process, &settings.idempotency);
        let brute_force = BruteForceGuard::new(&settings.brute_force, process.clock.clone());
        let oidc = Oidc::new(&settings.oidc, settings.people.console_page("/sign-in/oidc"))?;
        let guard = Guard::new(settings.delivery.https_only, &settings.delivery.allowed_networks);
        let tokens_granted = telemetry::meter()
            .u64_counter("tokens_granted")
            .with_description("Access tokens that clients and people got")
            .build();
        let app = Self {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            outbox,
            backlog,
            signing_keys,
            verifier: verifier.clone(),
            sealer,
            client_cache: ClientCache::new(),
            brute_force,
            revocation_limit: PerMinute::new(tokens::MAX_REVOCATIONS_PER_MINUTE),
            passwords: Passwords::new(settings.people.password_hashers),
            session_tokens: SessionTokens::new(),
            policy_warnings: PolicyWarnings::default(),
            oidc,
            guard,
            tokens_granted,
            settings,
        };
        Ok((app, verifier))
    }
}

#[cfg(test)]
mod tests;
