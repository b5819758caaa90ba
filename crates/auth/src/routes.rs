//! The URL table.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{audit, clients, endpoints, merchants, oauth, signing_keys, well_known};

pub(crate) fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(oauth::issue_token)
        .service(oauth::revoke_token)
        .service(oauth::introspect_token)
        .service(well_known::show_jwks)
        .service(well_known::show_metadata)
        .service(merchants::create_merchant)
        .service(merchants::list_merchants)
        .service(merchants::republish_merchants)
        .service(merchants::show_merchant)
        .service(merchants::update_merchant)
        .service(endpoints::list_endpoints)
        .service(endpoints::set_endpoint)
        .service(endpoints::delete_endpoint)
        .service(endpoints::rotate_endpoint_secret)
        .service(endpoints::pause_endpoint)
        .service(endpoints::resume_endpoint)
        .service(clients::create_client)
        .service(clients::list_clients)
        .service(clients::rotate_client_secret)
        .service(clients::revoke_client)
        .service(signing_keys::rotate_signing_key)
        .service(audit::list_audit_records);
}
