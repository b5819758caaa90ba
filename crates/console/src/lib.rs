//! The web console shows operators and merchants their deliveries, orders, returns and settings, and
//! lets them replay, pause, rotate and settle.
//!
//! It owns nothing: it has no database and no broker connection. Every page calls the services over
//! HTTP with the token of the signed-in person, so a page can show and do only what that person may.

mod deliveries;
mod delivery;
mod error;
mod notice;
mod page;
mod person;
mod routes;
mod sign_in;

use std::sync::Arc;

use actix_web::web;
use diesel_migrations::EmbeddedMigrations;
use pages::api::{Api, ServiceUrls};
use platform::{Clock, Process, Service, identity::Verifier};
use serde::Deserialize;
use utoipa_actix_web::service_config::ServiceConfig;

/// The sections of the console's settings.
#[derive(Debug, Deserialize)]
pub struct Settings {
    services: ServiceUrls,
}

/// The running console.
pub struct App {
    api: Api,
    clock: Clock,
}

impl Service for App {
    const NAME: &'static str = "console";
    const ABOUT: &'static str = "Shows deliveries, orders, returns and settings to people";
    const DEFAULTS: &'static [&'static str] = &[include_str!("../default.toml")];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        Vec::new()
    }

    fn routes(_: &mut ServiceConfig<'_>) {
        // Pages are not part of an API document; see `share`.
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        routes::configure(app);
    }

    async fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let app = Self { api: Api::new(settings.services)?, clock: process.clock.clone() };
        Ok((app, Arc::new(Verifier::disabled(process.clock.clone()))))
    }
}
