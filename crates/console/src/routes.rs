//! The URL table. Each page module adds its own paths.

use actix_web::{
    middleware::{Compress, from_fn},
    web,
};
use pages::{assets, security};

use crate::{
    deliveries, delivery,
    error::{self, PageError},
    sign_in,
};

/// Longest form. The largest field is the body of a request in the API reference.
const MAX_FORM_BYTES: usize = 256 * 1024;

pub(crate) fn configure(app: &mut web::ServiceConfig) {
    app.service(
        web::scope("")
            .wrap(from_fn(security::protect))
            .wrap(Compress::default())
            .app_data(web::PayloadConfig::new(MAX_FORM_BYTES))
            .app_data(web::PathConfig::default().error_handler(|_, _| PageError::NotFound.into()))
            .app_data(web::QueryConfig::default().error_handler(|_, _| PageError::BadForm.into()))
            .app_data(web::FormConfig::default().error_handler(|_, _| PageError::BadForm.into()))
            .configure(assets::routes)
            .configure(sign_in::routes)
            .configure(deliveries::routes)
            .configure(delivery::routes)
            .default_service(web::to(error::not_found)),
    );
}
