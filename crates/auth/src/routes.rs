//! The URL table.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{audit, clients, endpoints, keys, merchants, oauth, well_known};

pub(crate) fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(oauth::token)
        .service(oauth::revoke)
        .service(oauth::introspect)
        .service(well_known::jwks)
        .service(well_known::metadata)
        .service(merchants::add_merchant)
        .service(merchants::list_merchants)
        .service(merchants::republish_merchants)
        .service(merchants::show_merchant)
        .service(merchants::set_merchant)
        .service(endpoints::list_endpoints)
        .service(endpoints::set_endpoint)
        .service(endpoints::remove_endpoint)
        .service(endpoints::rotate_endpoint_secret)
        .service(endpoints::pause_endpoint)
        .service(endpoints::resume_endpoint)
        .service(clients::add_client)
        .service(clients::list_clients)
        .service(clients::rotate_client_secret)
        .service(clients::revoke_client)
        .service(keys::rotate_signing_key)
        .service(audit::list_audit_records);
}
