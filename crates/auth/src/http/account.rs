//! The own account of a signed-in person.

use actix_web::{HttpRequest, HttpResponse, post, web};
use domain::json::{Digest, Object, object, read_fields, text};
use platform::{
    Problem,
    http::{ClientIp, ErrorBody, Json, Sequential},
    idempotency::{IdempotencyKey, KeyHeader},
    identity::Caller,
};
use utoipa::ToSchema;

use super::{idempotency_key, sessions::record_rejection};
use crate::{
    App,
    account::{self, PasswordChange, RecoveryCodes, SignedIn, TotpChange},
    totp::TotpSetup,
};

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct ChangePasswordRequest {
    #[schema(max_length = 1000)]
    current_password: String,
    /// A TOTP code or a recovery code. Required if the person has TOTP.
    #[schema(max_length = 1000, example = "287082")]
    totp_code: Option<String>,
    /// Neither the e-mail address nor one of the most common passwords.
    #[schema(min_length = 8, max_length = 128)]
    new_password: String,
    /// The new password that was typed again in a form. It must be the same.
    #[schema(max_length = 1000)]
    new_password_again: Option<String>,
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct ReplaceRecoveryCodesRequest {
    #[schema(max_length = 1000)]
    password: String,
    /// A TOTP code or a recovery code.
    #[schema(max_length = 1000, example = "287082")]
    totp_code: Option<String>,
}

/// A new secret for the authenticator app.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowTotpSetupRequest {
    /// The `setup` of an earlier response, to get the same secret again.
    #[schema(max_length = 1000)]
    totp_setup: Option<String>,
}

#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct ChangeTotpRequest {
    #[schema(max_length = 1000)]
    password: String,
    /// A code of the present authenticator app, or a recovery code. Required if the person has TOTP.
    #[schema(max_length = 1000, example = "287082")]
    totp_code: Option<String>,
    /// The `setup` of `POST /v1/totp/setup`.
    #[schema(max_length = 1000)]
    totp_setup: String,
    /// A code of the new secret.
    #[schema(max_length = 1000, example = "081804")]
    new_totp_code: String,
}

pub(crate) fn read_setup(body: &Object<'_>) -> Option<ShowTotpSetupRequest> {
    let setup = body.optional("totp_setup", text(0..=1000));
    read_fields!(body => ShowTotpSetupRequest { totp_setup: setup })
}

/// The key of a request for new codes. The password and the code are not part of the digest, which is stored and not
/// encrypted; the session is. Each request is verified.
fn own_key<'a>(
    header: &'a KeyHeader,
    caller: &'a Caller,
    signed_in: &SignedIn,
    operation: &'static str,
) -> Option<IdempotencyKey<'a>> {
    let session = Digest::of_text(&signed_in.session.to_string());
    idempotency_key(header, caller, operation, operation, session)
}

/// Change the own password
///
/// Ends all other sessions of the person. Needs the token of a person. The fifth wrong password or code ends
/// the session.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    request_body(content = ChangePasswordRequest, example = json!({ "current_password": "a-long-password", "new_password": "a-longer-password" })),
    responses(
        (status = 204), (status = 401, description = "No valid token, or the session ended after wrong passwords", body = ErrorBody), (status = 403, description = "Not the token of a person", body = ErrorBody),
        (status = 429, description = "Too many failures from this address or of this person, or too many passwords are being checked", body = ErrorBody),
    )
)]
#[post("/v1/password")]
pub(crate) async fn change_password(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let signed_in = SignedIn::of(&caller)?;
    let change = body.read(object(PasswordChange::read)).await?;
    let changed = account::change_password(&app, &signed_in, change, address).await;
    changed.inspect_err(|error| record_rejection(&request, error))?;
    Ok(HttpResponse::NoContent().finish())
}

/// Replace the own recovery codes
///
/// The old codes stop working. Only this response contains the new ones. Needs the token of a person.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same session with the same key takes effect once and gets the first response with the same codes. It needs the password too, and the code of the first request or a new one. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise.")),
    request_body(content = ReplaceRecoveryCodesRequest, example = json!({ "password": "a-long-password", "totp_code": "287082" })),
    responses(
        (status = 201, body = RecoveryCodes), (status = 401, description = "No valid token, or the session ended after wrong passwords", body = ErrorBody), (status = 403, description = "Not the token of a person", body = ErrorBody),
        (status = 409, description = "The person has no TOTP", body = ErrorBody),
        (status = 429, description = "Too many failures from this address or of this person, or too many passwords are being checked", body = ErrorBody),
    )
)]
#[post("/v1/recovery_codes")]
pub(crate) async fn replace_recovery_codes(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let signed_in = SignedIn::of(&caller)?;
    let proof = body.read(object(account::read_proof)).await?;
    let key = own_key(&header, &caller, &signed_in, "recovery_codes");
    let replaced =
        account::replace_recovery_codes(&app, &signed_in, key.as_ref(), proof, address).await;
    Ok(HttpResponse::Created()
        .json(replaced.inspect_err(|error| record_rejection(&request, error))?))
}

/// Show a new authenticator secret
///
/// Nothing changes until `POST /v1/totp` gets a code of it. Needs the token of a person.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    request_body(content = ShowTotpSetupRequest, example = json!({})),
    responses(
        (status = 200, body = TotpSetup),
        (status = 403, description = "Not the token of a person", body = ErrorBody),
    )
)]
#[post("/v1/totp/setup")]
pub(crate) async fn show_totp_setup(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let signed_in = SignedIn::of(&caller)?;
    let ShowTotpSetupRequest { totp_setup: setup } = body.read(object(read_setup)).await?;
    Ok(HttpResponse::Ok().json(account::show_totp_setup(&app, &signed_in, setup).await?))
}

/// Change the own authenticator app
///
/// Sets TOTP up or replaces it, replaces the recovery codes and ends all other sessions of the person. Only
/// this response contains the new recovery codes. Needs the token of a person. The fifth wrong password or
/// code ends the session.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes it safe to repeat the request. Optional; 1 to 255 visible ASCII characters, for example a UUID. A repeated request of the same session with the same key takes effect once and gets the first response with the same codes. It needs the password too, and the code of the first request or a new one. A request that failed does not use up its key. Keys are kept for an hour, unless the setting `idempotency.retention` says otherwise.")),
    request_body(content = ChangeTotpRequest, example = json!({ "password": "a-long-password", "totp_code": "287082", "totp_setup": "k1.c2VhbGVk", "new_totp_code": "081804" })),
    responses(
        (status = 201, body = RecoveryCodes),
        (status = 401, description = "No valid token, or the session ended after wrong passwords", body = ErrorBody),
        (status = 403, description = "Not the token of a person", body = ErrorBody),
        (status = 429, description = "Too many failures from this address or of this person, or too many passwords are being checked", body = ErrorBody),
    )
)]
#[post("/v1/totp")]
pub(crate) async fn change_totp(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let signed_in = SignedIn::of(&caller)?;
    let change = body.read(object(TotpChange::read)).await?;
    let key = own_key(&header, &caller, &signed_in, "totp");
    let changed = account::change_totp(&app, &signed_in, key.as_ref(), change, address).await;
    Ok(HttpResponse::Created()
        .json(changed.inspect_err(|error| record_rejection(&request, error))?))
}
