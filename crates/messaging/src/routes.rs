//! The routes that every service with events has.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::{backlog, republish_requests};

/// The routes of the backlog and of events. The service must register its
/// [`Backlog`](crate::Backlog) as app data, see `Service::share`.
pub fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(backlog::show_backlog)
        .service(republish_requests::republish_events)
        .service(republish_requests::show_republish)
        .service(republish_requests::list_republishes)
        .service(republish_requests::stop_republish);
}
