//! The URL table. Deliveries bring their own, see `delivery::routes`.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::returnable;

pub(crate) fn configure(config: &mut ServiceConfig<'_>) {
    config.service(returnable::show_returnable);
}
