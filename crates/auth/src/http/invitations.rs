//! Invitations, for the people who received their links. These operations need no token.

use actix_web::{HttpRequest, HttpResponse, post, web};
use domain::json::{Object, object, read_fields, text};
use platform::{
    Problem,
    http::{ClientIp, ErrorBody, Json},
    idempotency::KeyHeader,
};
use utoipa::ToSchema;

use super::sessions::record_rejection;
use crate::{
    App,
    invitations::{self, Acceptance, AcceptedInvitation, InvitationDetails},
};

/// The token of an invitation.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowInvitationRequest {
    #[schema(max_length = 1000)]
    token: String,
    /// The `totp.setup` of an earlier response, to get the same secret again. Without it, each response
    /// has a new secret.
    #[schema(max_length = 1000)]
    totp_setup: Option<String>,
}

/// The credentials that the invited person chose.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct AcceptInvitationRequest {
    #[schema(max_length = 1000)]
    token: String,
    /// Neither the e-mail address nor one of the most common passwords.
    #[schema(min_length = 8, max_length = 128)]
    password: String,
    /// The password that was typed again in a form. It must be the same.
    #[schema(max_length = 1000)]
    password_again: Option<String>,
    /// A code of the secret that `POST /v1/invitations/show` returned. Operators need it; without it,
    /// other people sign in with the password alone.
    #[schema(max_length = 1000, example = "287082")]
    totp_code: Option<String>,
    /// The `totp.setup` of the same response. Required with `totp_code`.
    #[schema(max_length = 1000)]
    totp_setup: Option<String>,
    /// Ignored. The session has the address of the connection.
    #[schema(max_length = 1000)]
    address: Option<String>,
    /// The browser, for the list of sessions.
    #[schema(max_length = 10_000)]
    user_agent: Option<String>,
    /// The session that the browser has until now. It ends.
    #[schema(max_length = 1000)]
    previous_session: Option<String>,
}

pub(crate) fn read_shown(body: &Object<'_>) -> Option<ShowInvitationRequest> {
    read_fields!(body => ShowInvitationRequest {
        token: body.required("token", text(0..=1000)),
        totp_setup: body.optional("totp_setup", text(0..=1000)),
    })
}

/// Show an invitation
///
/// The person to whom it belongs, and a new TOTP secret for an authenticator app.
#[utoipa::path(
    tag = "people", security(()),
    request_body(content = ShowInvitationRequest, example = json!({ "token": "9rYbEvJ4qUs0cUHD3sG0ncYBF5r0cEI0vGZ2T8xG7oA" })),
    responses(
        (status = 200, body = InvitationDetails), (status = 403, description = "Passwords are switched off", body = ErrorBody),
        (status = 404, description = "The invitation does not exist, was used or replaced, or has expired", body = ErrorBody),
        (status = 429, description = "Too many failures from this address", body = ErrorBody),
    )
)]
#[post("/v1/invitations/show")]
pub(crate) async fn show_invitation(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    body: Json,
) -> Result<HttpResponse, Problem> {
    let ShowInvitationRequest { token, totp_setup: setup } = body.read(object(read_shown)).await?;
    let shown = invitations::show(&app, &token, setup, address).await;
    Ok(HttpResponse::Ok().json(shown.inspect_err(|error| record_rejection(&request, error))?))
}

/// Accept an invitation
///
/// Sets the password and TOTP, ends older sessions of the person and starts a new one. Only this response
/// contains the recovery codes.
#[utoipa::path(
    tag = "people", security(()),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request with the same key, token, TOTP setup and password takes effect once and gets the first response with the same session and codes. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise.")),
    request_body(content = AcceptInvitationRequest, example = json!({ "token": "9rYbEvJ4qUs0cUHD3sG0ncYBF5r0cEI0vGZ2T8xG7oA", "password": "a-long-password", "totp_code": "287082", "totp_setup": "k1.c2VhbGVk" })),
    responses(
        (status = 201, body = AcceptedInvitation), (status = 403, description = "Passwords are switched off", body = ErrorBody),
        (status = 404, description = "The invitation does not exist, was used or replaced, or has expired", body = ErrorBody),
        (status = 409, description = "An earlier request with the same `Idempotency-Key` accepted the invitation with another password", body = ErrorBody),
        (status = 429, description = "Too many failures from this address, or too many passwords are being checked", body = ErrorBody),
    )
)]
#[post("/v1/invitations/accept")]
pub(crate) async fn accept_invitation(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    header: KeyHeader,
    body: Json,
) -> Result<HttpResponse, Problem> {
    let acceptance = body.read(object(move |body| Acceptance::read(body, address))).await?;
    let accepted = invitations::accept(&app, &header, acceptance).await;
    Ok(HttpResponse::Created()
        .json(accepted.inspect_err(|error| record_rejection(&request, error))?))
}
