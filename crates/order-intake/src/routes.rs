//! The URL table.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{orders, publish};

pub(crate) fn configure(config: &mut ServiceConfig<'_>) {
    config
        .service(publish::publish_orders)
        .service(orders::list_orders)
        .service(orders::find_order);
}
