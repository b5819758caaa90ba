//! The pages. Each page module adds its own paths.
//!
//! Paths are written with `/{merchant}`. On a merchant's own host name the shopper sees them without it;
//! `hosts` adds it before these routes are tried.

use actix_web::{
    middleware::{Compress, from_fn},
    web,
};
use pages::{assets, security};
use platform::http::RendersPages;

use crate::{
    check, choose, error::PageError, error_page, find, hosts, language_choice, method, page,
    resolution, returns, theme, withdraw,
};

pub(crate) fn configure(app: &mut web::ServiceConfig) {
    app.app_data(RendersPages).service(
        web::scope("")
            .wrap(from_fn(hosts::rewrite))
            .wrap(from_fn(error_page::render))
            .wrap(from_fn(security::protect))
            .wrap(Compress::default())
            .app_data(web::PathConfig::default().error_handler(|_, _| PageError::NotFound.into()))
            .app_data(web::QueryConfig::default().error_handler(|_, _| PageError::BadForm.into()))
            .configure(page::assets)
            .configure(assets::routes)
            .configure(theme::routes)
            .configure(language_choice::routes)
            .configure(choose::routes)
            .configure(resolution::routes)
            .configure(method::routes)
            .configure(check::routes)
            .configure(returns::routes)
            .configure(withdraw::routes)
            .configure(find::routes)
            .route("/{merchant}/{rest:.*}", web::to(error_page::not_found_at))
            .default_service(web::to(error_page::not_found)),
    );
}
