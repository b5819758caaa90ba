//! The returns portal: shoppers find an order, choose units to return and follow the return.
//!
//! It owns nothing: it has no database and no broker connection. It calls auth, rma-engine and exchange
//! with a token of the scope `shopper`, which opens only the orders that the shopper has proven to know.
//! The state of a shopper is in the URL (`draft`) and in a sealed cookie (`cookie`), so every process
//! can serve every request.
//!
//! A page is a module with `routes`, a template that extends `portal.html`, and texts of the crate `texts`.
//! Its handler gets a `visit::Visit`, or a `visit::Proven` if it works on an order.

mod access;
mod basket;
mod check;
mod choose;
mod cookie;
mod draft;
mod error;
mod error_page;
mod find;
mod hosts;
mod language;
mod language_choice;
mod merchant;
mod method;
mod offer;
mod order;
mod page;
mod refusal;
mod resolution;
mod returns;
mod routes;
mod sent;
mod settings;
#[cfg(test)]
mod tests;
mod theme;
mod visit;
mod withdraw;

use std::sync::Arc;

use actix_web::web;
use pages::api::{Api, Service as ApiService};
use platform::{Clock, Process, Service, identity::Verifier, sealing::Sealer};
use url::Url;
use utoipa_actix_web::service_config::ServiceConfig;

pub use settings::Settings;

use settings::ServiceUrls;

pub struct App {
    access: access::Access,
    portals: merchant::Portals,
    sealer: Sealer,
    public_url: Url,
    pseudo_languages: bool,
    clock: Clock,
}

impl Service for App {
    const NAME: &'static str = "portal";
    const ABOUT: &'static str = "Lets shoppers return what they ordered";
    const DEFAULTS: &'static [&'static str] = &[include_str!("../default.toml")];
    type Settings = Settings;

    fn routes(_: &mut ServiceConfig<'_>) {
        // Pages are not part of an API document; see `share`.
    }

    fn share(&self, app: &mut web::ServiceConfig) {
        routes::configure(app);
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let ServiceUrls { auth, returns, exchange } = settings.services;
        let api = Api::new([
            (ApiService::Auth, auth),
            (ApiService::RmaEngine, returns),
            (ApiService::Exchange, exchange),
        ])?;
        let app = Self {
            access: access::Access::new(api, settings.client),
            portals: merchant::Portals::new(),
            sealer: Sealer::new(&settings.sealing)?,
            public_url: settings.public_url,
            pseudo_languages: settings.pseudo_languages,
            clock: process.clock.clone(),
        };
        Ok((app, Arc::new(Verifier::disabled(process.clock.clone()))))
    }
}
