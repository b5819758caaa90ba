//! The definition of a service, and the resources that it gets.
//!
//! See docs/decisions/processes.md.

use std::sync::Arc;

use actix_web::web;
use diesel_migrations::EmbeddedMigrations;
use serde::de::DeserializeOwned;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{Clock, Tasks, database::Pool, health::Health, http, identity::Verifier};

/// The definition of a service. The implementing type is the state of the service, which handlers
/// receive as `web::Data<Self>`.
pub trait Service: Send + Sync + Sized + 'static {
    /// The name of the binary and of the service in logs; in upper case, the prefix of its settings in
    /// the environment.
    const NAME: &'static str;
    /// One line for `--help` and for the OpenAPI document.
    const ABOUT: &'static str;
    /// The tags of the API document with their descriptions.
    const TAGS: &'static [(&'static str, &'static str)] = &[];
    /// Embedded settings; later texts override earlier ones. A service without a database sets
    /// `database.url` to an empty text here.
    const DEFAULTS: &'static [&'static str];
    /// The sections of the service, beside those of the platform.
    type Settings: DeserializeOwned + Send + 'static;

    /// The migrations of its tables, in the order in which they must be applied. A service without a
    /// database has none.
    fn migrations() -> Vec<EmbeddedMigrations> {
        Vec::new()
    }
    /// The handlers of the API.
    fn routes(config: &mut ServiceConfig<'_>);
    /// Adds the messages that the service sends to merchants to its OpenAPI document.
    fn webhooks(document: &mut OpenApi) {
        // Most services send none.
        let _ = document;
    }
    /// State for handlers that come from a shared crate and do not know `Self`.
    fn share(&self, app: &mut web::ServiceConfig) {
        // Most services have none.
        let _ = app;
    }
    /// Starts the tasks of the service. Must not need the database or the broker to be available yet. A
    /// service whose operations need no token returns [`Verifier::disabled`].
    ///
    /// The function is not async: the body of an async function is compiled in each program that polls it.
    fn start(process: &Process, settings: Self::Settings) -> anyhow::Result<(Self, Arc<Verifier>)>;
}

/// Resources that the platform gives to a service at startup.
pub struct Process {
    /// Has no connections in a service without a database.
    pub pool: Pool,
    pub tasks: Tasks,
    pub clock: Clock,
    pub health: Health,
    pub http: http::Settings,
}
