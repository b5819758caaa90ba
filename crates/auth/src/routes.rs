//! The handlers of the API. The attribute of each handler names its method and URL, as does the API document.

use utoipa_actix_web::service_config::ServiceConfig;

use crate::http::{
    account, audit, clients, endpoints, invitations, merchants, oauth, oidc, people,
    policy_versions, sessions, signing_keys, warehouses, well_known,
};

pub(crate) fn routes(config: &mut ServiceConfig<'_>) {
    config
        .service(oauth::issue_token)
        .service(oauth::revoke_token)
        .service(oauth::introspect_token)
        .service(oidc::show_sign_in_methods)
        .service(oidc::start_oidc)
        .service(oidc::finish_oidc)
        .service(well_known::show_jwks)
        .service(well_known::show_metadata)
        .service(merchants::create_merchant)
        .service(merchants::list_merchants)
        .service(merchants::republish_merchants)
        .service(merchants::show_merchant)
        .service(merchants::update_merchant)
        .service(policy_versions::list_policy_versions)
        .service(endpoints::list_endpoints)
        .service(endpoints::set_endpoint)
        .service(endpoints::delete_endpoint)
        .service(endpoints::rotate_endpoint_secret)
        .service(endpoints::pause_endpoint)
        .service(endpoints::resume_endpoint)
        .service(warehouses::list_warehouses)
        .service(warehouses::show_warehouse)
        .service(warehouses::set_warehouse)
        .service(warehouses::delete_warehouse)
        .service(clients::create_client)
        .service(clients::list_clients)
        .service(clients::show_client)
        .service(clients::rotate_client_secret)
        .service(clients::revoke_client)
        .service(people::invite_person)
        .service(people::list_people)
        .service(people::show_person)
        .service(people::update_person)
        .service(people::disable_person)
        .service(people::enable_person)
        .service(people::renew_invitation)
        .service(invitations::show_invitation)
        .service(invitations::accept_invitation)
        .service(sessions::start_session)
        .service(sessions::issue_session_token)
        .service(sessions::end_session_by_secret)
        .service(sessions::list_sessions)
        .service(sessions::end_sessions)
        .service(sessions::end_session)
        .service(account::change_password)
        .service(account::replace_recovery_codes)
        .service(account::show_totp_setup)
        .service(account::change_totp)
        .service(signing_keys::rotate_signing_key)
        .service(audit::list_audit_records)
        .configure(messaging::routes);
}
