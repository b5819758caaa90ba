//! The handlers of the API. The attribute of each handler names its method and URL, as does the API document.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{exchange_orders, variants};

pub(crate) fn configure(config: &mut ServiceConfig<'_>) {
    config
        .service(variants::show_variants)
        .service(exchange_orders::list_exchange_orders)
        .service(exchange_orders::show_exchange_order)
        .service(exchange_orders::abandon_exchange_order)
        .configure(delivery::routes)
        .configure(messaging::routes);
}
