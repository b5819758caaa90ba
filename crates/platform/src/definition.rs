//! A [`Service`] as values. The command line, the start and the server take these values, so that they are
//! compiled once and not in each program.

use std::{collections::HashMap, path::Path, sync::Arc};

use actix_web::web;
use diesel_migrations::EmbeddedMigrations;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{
    Process, Service,
    config::Faults,
    database, http,
    identity::Verifier,
    settings::{self, Settings},
};

/// The constants and functions of a [`Service`].
#[derive(Clone, Copy)]
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) tags: &'static [(&'static str, &'static str)],
    pub(crate) defaults: &'static [&'static str],
    pub(crate) migrations: fn() -> Vec<EmbeddedMigrations>,
    pub(crate) routes: fn(&mut ServiceConfig<'_>),
    pub(crate) webhooks: fn(&mut OpenApi),
    read_settings: ReadSettings,
}

/// Reads the settings of the platform, and those of the service into its [`Start`].
type ReadSettings =
    fn(&mut Faults, Option<&Path>, HashMap<String, String>) -> Option<(Settings, Start)>;

/// Starts a service with the settings that were read.
pub(crate) type Start = Box<dyn FnOnce(&Process) -> anyhow::Result<Started> + Send>;

/// A service whose tasks run.
pub(crate) struct Started {
    pub(crate) share: http::Share,
    pub(crate) verifier: Arc<Verifier>,
}

impl Definition {
    pub(crate) fn of<S: Service>() -> Self {
        Self {
            name: S::NAME,
            about: S::ABOUT,
            tags: S::TAGS,
            defaults: S::DEFAULTS,
            migrations: S::migrations,
            routes: S::routes,
            webhooks: S::webhooks,
            read_settings: |faults, file, environment| {
                let (settings, own) =
                    settings::read_sections(faults, S::DEFAULTS, file, environment)?;
                Some((settings, start::<S>(own)))
            },
        }
    }

    pub(crate) fn load_settings(
        &self,
        file: Option<&Path>,
        environment: HashMap<String, String>,
    ) -> Result<(Settings, Start), Faults> {
        let mut faults = Faults::new(self.name);
        match (self.read_settings)(&mut faults, file, environment) {
            Some(settings) if faults.is_empty() => Ok(settings),
            _ => Err(faults),
        }
    }

    /// Checks the settings as `serve` does: also whether it could listen, and whether it has a database.
    pub(crate) fn check_settings(
        &self,
        file: Option<&Path>,
        environment: HashMap<String, String>,
    ) -> Result<(), Faults> {
        let mut faults = Faults::new(self.name);
        if let Some((settings, _)) = (self.read_settings)(&mut faults, file, environment) {
            faults.add_check("http", http::check(&settings.http));
            faults.add_check("database", self.check_database_url(&settings.database));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// A service with tables needs `database.url`; a service without tables must not have it.
    pub(crate) fn check_database_url(&self, settings: &database::Settings) -> anyhow::Result<()> {
        let name = self.name;
        let has_tables = !(self.migrations)().is_empty();
        match (settings.url.is_some(), has_tables) {
            (false, true) => anyhow::bail!("database.url is empty, and {name} has tables"),
            (true, false) => {
                anyhow::bail!("database.url is set, and {name} has no database; remove the setting")
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn start<S: Service>(settings: S::Settings) -> Start {
    Box::new(|process| {
        let (service, verifier) = S::start(process, settings)?;
        let service = web::Data::new(service);
        let share = move |app: &mut web::ServiceConfig| {
            app.app_data(service.clone());
            service.share(app);
        };
        Ok(Started { share: Arc::new(share), verifier })
    })
}
