//! Signing keys, for operators.

use actix_web::{HttpResponse, post, web};
use chrono::{DateTime, Utc};
use platform::{Problem, http::ErrorBody, identity::Caller};
use serde::Serialize;
use utoipa::ToSchema;

use super::operator;
use crate::App;

/// A key that was just made.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewKey {
    id: String,
    /// From then on it signs; it is published already.
    activates_at: DateTime<Utc>,
}

/// Make a new signing key now
///
/// Tokens signed with the old one stay good until they expire.
#[utoipa::path(
    tag = "tokens", security(("bearer" = [])),
    responses(
        (status = 201, body = NewKey), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[post("/v1/signing_keys/rotate")]
pub(crate) async fn rotate_signing_key(
    app: web::Data<App>,
    caller: Caller,
) -> Result<HttpResponse, Problem> {
    let (id, activates_at) = app.keyring.rotate(operator(&caller)?).await?;
    Ok(HttpResponse::Created().json(NewKey { id, activates_at }))
}
