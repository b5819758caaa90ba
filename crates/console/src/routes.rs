//! The pages. Each page module adds its own paths.

use actix_web::{
    middleware::{Compress, from_fn},
    web,
};
use pages::{assets, security};
use platform::http::RendersPages;

use crate::{
    PageError, account, audit, deliveries, delivery, discrepancies, error_menu, events,
    exchange_orders, invitation, lookup, merchant, merchants, notice, orders, overdue, overview,
    people, reference, replays, returns, reviews, sent_form, sign_in, warehouse,
};

pub(crate) fn configure(app: &mut web::ServiceConfig) {
    app.app_data(RendersPages).service(
        web::scope("")
            .wrap(from_fn(sent_form::show_failed_form))
            .wrap(from_fn(error_menu::show_menu))
            .wrap(from_fn(notice::show_once))
            .wrap(from_fn(security::protect))
            .wrap(Compress::default())
            .app_data(web::PathConfig::default().error_handler(|_, _| PageError::NotFound.into()))
            .app_data(web::QueryConfig::default().error_handler(|_, _| PageError::BadForm.into()))
            .configure(assets::routes)
            .configure(sign_in::routes)
            .configure(invitation::routes)
            .configure(account::routes)
            .configure(merchants::routes)
            .configure(merchant::routes)
            .configure(people::routes)
            .configure(audit::routes)
            .configure(deliveries::routes)
            .configure(delivery::routes)
            .configure(overview::routes)
            .configure(replays::routes)
            .configure(events::routes)
            .configure(lookup::routes)
            .configure(orders::routes)
            .configure(returns::routes)
            .configure(exchange_orders::routes)
            .configure(reviews::routes)
            .configure(overdue::routes)
            .configure(warehouse::routes)
            .configure(discrepancies::routes)
            .configure(reference::routes)
            .default_service(web::to(error_menu::not_found)),
    );
}
