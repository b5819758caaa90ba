//! Signing keys, for operators.

use actix_web::{HttpResponse, post, web};
use platform::{Problem, identity::Caller};

use super::require_operator;
use crate::{App, signing_keys::SigningKeyView};

/// Rotate the signing key
///
/// Tokens that the old key signed stay valid until they expire.
#[utoipa::path(
    tag = "tokens", security(("bearer" = ["operator"])),
    responses((status = 201, body = SigningKeyView))
)]
#[post("/v1/signing_keys/rotate")]
pub(crate) async fn rotate_signing_key(
    app: web::Data<App>,
    caller: Caller,
) -> Result<HttpResponse, Problem> {
    let key = app.signing_keys.rotate(require_operator(&caller)?).await?;
    Ok(HttpResponse::Created().json(key))
}
