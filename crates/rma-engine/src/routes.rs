//! The handlers of the API. The attribute of each handler names its method and URL, as does the API document.
//! `delivery::routes` adds the handlers of deliveries.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{
    carrier_events, counts, deep_links, discrepancies, guarantees, listing, lookups, orders,
    policies, portals, receipts, returnable, returns, reviews,
};

pub(crate) fn configure(config: &mut ServiceConfig<'_>) {
    config
        .service(portals::show_portal)
        .service(lookups::look_up_order)
        .service(deep_links::create_deep_link)
        .service(deep_links::list_deep_links)
        .service(deep_links::revoke_deep_link)
        .service(orders::show_order)
        .service(returnable::show_returnable)
        .service(returns::quote_return)
        .service(returns::create_return)
        .service(listing::list_returns)
        .service(counts::count_returns)
        .service(returns::show_return)
        .service(returns::cancel_return)
        .service(reviews::approve_return)
        .service(reviews::decline_return)
        .service(guarantees::waive_units)
        .service(guarantees::report_guarantees)
        .service(listing::show_timeline)
        .service(policies::preview_policy)
        .service(receipts::receive_units)
        .service(carrier_events::report_carrier_event)
        .service(discrepancies::list_discrepancies)
        .service(discrepancies::resolve_discrepancy)
        .configure(messaging::routes);
}
