//! The own account of a signed-in person.

use actix_web::{HttpRequest, HttpResponse, post, web};
use domain::json::{Object, object};
use platform::{
    Problem,
    http::{ClientIp, ErrorBody, Json, Sequential},
    identity::Caller,
};
use secrecy::SecretString;
use utoipa::ToSchema;

use super::sessions::record_rejection;
use crate::{
    App,
    account::{self, PasswordChange, RecoveryCodes, SignedIn},
    sign_in::secret,
};

#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct ChangePasswordRequest {
    current_password: String,
    /// Neither the e-mail address nor one of the most common passwords.
    #[schema(min_length = 8, max_length = 128)]
    new_password: String,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct ReplaceRecoveryCodesRequest {
    password: String,
}

fn read_password(body: &Object<'_>) -> Option<SecretString> {
    body.reject_unknown(&["password"]);
    body.required("password", secret)
}

/// Change the own password
///
/// Ends all other sessions of the person. Needs the token of a person.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    request_body(content = ChangePasswordRequest, example = json!({ "current_password": "a-long-password", "new_password": "a-longer-password" })),
    responses(
        (status = 204), (status = 401, body = ErrorBody), (status = 403, description = "Not the token of a person", body = ErrorBody),
        (status = 422, body = ErrorBody), (status = 429, description = "Too many failures from this address", body = ErrorBody),
        (status = 503, description = "Too many passwords are being checked", body = ErrorBody),
    )
)]
#[post("/v1/password")]
pub(crate) async fn change_password(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    Sequential(caller, Json(body)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let signed_in = SignedIn::of(&caller)?;
    let change = body.read(object(PasswordChange::read))?;
    let changed = account::change_password(&app, &signed_in, change, address).await;
    changed.inspect_err(|error| record_rejection(&request, error))?;
    Ok(HttpResponse::NoContent().finish())
}

/// Replace the own recovery codes
///
/// The old codes stop working. Only this response contains the new ones. Needs the token of a person.
#[utoipa::path(
    tag = "sessions", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    request_body(content = ReplaceRecoveryCodesRequest, example = json!({ "password": "a-long-password" })),
    responses(
        (status = 201, body = RecoveryCodes), (status = 401, body = ErrorBody), (status = 403, description = "Not the token of a person", body = ErrorBody),
        (status = 409, description = "The person has no TOTP", body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 429, description = "Too many failures from this address", body = ErrorBody),
        (status = 503, description = "Too many passwords are being checked", body = ErrorBody),
    )
)]
#[post("/v1/recovery_codes")]
pub(crate) async fn replace_recovery_codes(
    app: web::Data<App>,
    request: HttpRequest,
    ClientIp(address): ClientIp,
    Sequential(caller, Json(body)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let signed_in = SignedIn::of(&caller)?;
    let password = body.read(object(read_password))?;
    let replaced = account::replace_recovery_codes(&app, &signed_in, password, address).await;
    Ok(HttpResponse::Created()
        .json(replaced.inspect_err(|error| record_rejection(&request, error))?))
}
