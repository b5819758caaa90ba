//! `GET /v1/portals/{name}`: the appearance of a merchant's portal.

use actix_web::{get, web};
use domain::access::Scope;
use platform::Problem;
use platform::http::ErrorBody;
use platform::identity::Caller;

use crate::App;
use crate::error::Error;
use crate::shoppers::portals::{self, Portal};

/// Show the portal of a merchant
///
/// The name, colours, languages and return options that the portal shows to shoppers of the merchant.
#[utoipa::path(
    tag = "shoppers", security(("bearer" = ["shopper"])),
    params(("name" = String, Path, description = "The merchant's identifier, or one of the host names of its portal")),
    responses(
        (status = 200, description = "The portal", body = Portal),
        (status = 404, description = "No merchant has this name", body = ErrorBody),
    ),
)]
#[get("/v1/portals/{name}")]
pub(crate) async fn show_portal(
    app: web::Data<App>,
    caller: Caller,
    name: web::Path<String>,
) -> Result<web::Json<Portal>, Problem> {
    caller.require(Scope::Shopper)?;
    let merchant = portals::find(&app.merchants, &name);
    let merchant = merchant.ok_or_else(|| Error::NoPortal(name.into_inner()))?;
    let sends_mail = app.messages.deliveries.sends_mail();
    Ok(web::Json(Portal::new(&merchant, sends_mail)))
}
