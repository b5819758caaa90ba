//! The handlers of the API. The attribute of each handler names its method and URL, as does the API document.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{erasures, orders, publish, reset, summary};

pub(crate) fn configure(config: &mut ServiceConfig<'_>) {
    config
        .service(publish::publish_orders)
        .service(orders::list_orders)
        .service(summary::summarize_orders)
        .service(orders::find_order)
        .service(reset::reset_order)
        .service(erasures::erase_shopper)
        .service(erasures::list_erasures)
        .service(erasures::show_erasure)
        .configure(messaging::routes);
}
