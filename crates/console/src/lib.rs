//! The web console shows operators and merchants their deliveries, orders, returns and settings, and
//! lets them replay deliveries, pause endpoints, rotate secrets and resolve discrepancies.
//!
//! It owns nothing: it has no database and no broker connection. Every page calls the services over
//! HTTP with the token of the signed-in person, so a page can show and do only what that person may.

mod account;
mod actors;
mod audit;
mod changes;
mod confirm;
mod cookies;
mod deliveries;
mod delivery;
mod discrepancies;
mod endpoint_health;
mod error;
mod error_menu;
mod error_summary;
mod events;
mod exchange_orders;
mod failed_form;
mod filter;
#[cfg(test)]
mod fixtures;
mod form;
mod form_key;
mod home;
mod invitation;
mod list;
mod lookup;
mod markup;
mod merchant;
mod merchants;
mod notice;
mod orders;
mod overdue;
mod overview;
mod page;
mod parts;
mod people;
mod person;
mod record_list;
mod reference;
mod replays;
mod returns;
mod reviews;
mod routes;
mod sent_form;
mod sessions;
mod settings;
mod sign_in;
mod states;
mod table;
mod time_field;
mod warehouse;

use std::sync::Arc;

use actix_web::web;
use pages::api::Api;
use platform::{Clock, Process, Service, identity::Verifier};
use utoipa_actix_web::service_config::ServiceConfig;

pub use settings::Settings;

pub(crate) use self::{
    error::{PageError, PageResult},
    notice::Notice,
    page::{Page, Section, html, html_with, rejected},
    person::{Posted, SignedIn},
};

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

    fn routes(_: &mut ServiceConfig<'_>) {
        // Pages are not part of an API document; see `share`.
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        routes::configure(app);
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let app = Self { api: Api::new(settings.services)?, clock: process.clock.clone() };
        Ok((app, Arc::new(Verifier::disabled(process.clock.clone()))))
    }
}
