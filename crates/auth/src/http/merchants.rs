//! Merchants, for operators; a merchant may look at itself.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, get, patch, post, web};
use chrono::{DateTime, Utc};
use domain::{
    json::object,
    merchant::{Endpoint, Sealed, Settings, SettingsChange, read_new_merchant},
};
use platform::{
    Problem,
    http::{ErrorBody, Json, Page, next},
    identity::Caller,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::operator;
use crate::{
    App,
    error::Error,
    merchants,
    store::{self, merchants::Stored},
};

/// Stands where a secret is: it exists, and nobody is shown it.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Hidden)]
pub(crate) enum Hidden {
    #[serde(rename = "********")]
    Hidden,
}

/// A merchant as it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MerchantView {
    #[schema(example = "acme")]
    identifier: String,
    /// Grows with every change, and when it is announced again.
    version: i64,
    #[serde(flatten)]
    settings: Settings,
    endpoints: BTreeMap<String, Endpoint<Hidden>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl From<Stored> for MerchantView {
    fn from(Stored { merchant, created_at, updated_at }: Stored) -> Self {
        let endpoints = merchant
            .endpoints
            .iter()
            .map(|(interface, endpoint)| (interface.to_string(), hide(endpoint)));
        Self {
            identifier: merchant.identifier.to_string(),
            version: merchant.version,
            endpoints: endpoints.collect(),
            settings: merchant.settings,
            created_at,
            updated_at,
        }
    }
}

/// An endpoint without its secrets.
pub(super) fn hide(endpoint: &Endpoint<Sealed>) -> Endpoint<Hidden> {
    let Ok(hidden) = endpoint.map(|_| Ok::<_, std::convert::Infallible>(Hidden::Hidden));
    hidden
}

/// Some merchants.
#[derive(Serialize, ToSchema)]
pub(crate) struct MerchantPage {
    merchants: Vec<MerchantView>,
    /// Ask for `?after=` this to go on; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A merchant to be added; what is not said has a default.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct NewMerchant {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$", example = "acme")]
    identifier: String,
    name: String,
    #[serde(flatten)]
    settings: SettingsPatch,
}

/// Settings to be changed; what is not said stays. `base_url` and `support_contact` can be null.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct SettingsPatch {
    name: Option<String>,
    time_zone: Option<String>,
    currency: Option<String>,
    managed_receiving: Option<bool>,
    return_window_days: Option<u16>,
    final_sale_tags: Option<Vec<String>>,
    returns: Option<ReturnPolicyPatch>,
    strict_amounts: Option<bool>,
    strict_refund_dates: Option<bool>,
    support_contact: Option<domain::merchant::SupportContact>,
    base_url: Option<String>,
}

/// What to change of what shoppers are offered; lists are replaced whole, `gift_card` can be null.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the shape of a request, for the API document")]
pub(crate) struct ReturnPolicyPatch {
    reasons: Option<Vec<domain::merchant::ReturnReason>>,
    methods: Option<Vec<domain::merchant::MethodOffer>>,
    free_exchange_shipping: Option<bool>,
    gift_card: Option<domain::returns::GiftCardOffer>,
}

/// How many merchants were announced.
#[derive(Serialize, ToSchema)]
pub(crate) struct Republished {
    merchants: u64,
}

/// Add a merchant
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])), request_body = NewMerchant,
    responses(
        (status = 201, body = MerchantView),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 409, description = "The identifier is taken", body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[post("/v1/merchants")]
pub(crate) async fn add_merchant(
    app: web::Data<App>,
    caller: Caller,
    Json(document): Json,
) -> Result<HttpResponse, Problem> {
    let actor = operator(&caller)?;
    let (id, settings) = document.read(object(read_new_merchant))?;
    let stored = merchants::add(&app, actor, id, settings).await?;
    Ok(HttpResponse::Created().json(MerchantView::from(stored)))
}

/// List merchants
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])), params(Page),
    responses(
        (status = 200, body = MerchantPage), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/merchants")]
pub(crate) async fn list_merchants(
    app: web::Data<App>,
    caller: Caller,
    page: web::Query<Page>,
) -> Result<HttpResponse, Problem> {
    operator(&caller)?;
    let limit = page.limit()?;
    let mut conn = app.pool.get().await?;
    let mut found = store::merchants::page(&mut conn, page.after(), limit + 1).await?;
    let next = next(&mut found, limit, |stored| stored.merchant.identifier.to_string());
    let merchants = found.into_iter().map(MerchantView::from).collect();
    Ok(HttpResponse::Ok().json(MerchantPage { merchants, next }))
}

/// Announce every merchant and every revocation in force again
///
/// For a service whose copy was lost or that was added to an installation with history, and for all
/// of them when this service's database was restored.
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])),
    responses(
        (status = 200, body = Republished), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[post("/v1/merchants/republish")]
pub(crate) async fn republish_merchants(
    app: web::Data<App>,
    caller: Caller,
) -> Result<HttpResponse, Problem> {
    let merchants = merchants::republish(&app, operator(&caller)?).await?;
    Ok(HttpResponse::Ok().json(Republished { merchants }))
}

/// Show a merchant
///
/// A merchant's own token may read its own settings.
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])), params(("merchant" = String, Path)),
    responses(
        (status = 200, body = MerchantView), (status = 401, body = ErrorBody), (status = 404, body = ErrorBody),
    )
)]
#[get("/v1/merchants/{merchant}")]
pub(crate) async fn show_merchant(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let own = caller.claims.merchant.as_ref().is_some_and(|own| own.as_str() == merchant.as_str());
    if !own && !caller.is_operator() {
        // Whether another merchant exists is none of the caller's business.
        return Err(Error::NoMerchant(merchant.into_inner()).into());
    }
    let stored = store::merchants::find(&mut *app.pool.get().await?, &merchant).await?;
    Ok(HttpResponse::Ok().json(MerchantView::from(stored)))
}

/// Change a merchant's settings
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])), params(("merchant" = String, Path)), request_body = SettingsPatch,
    responses(
        (status = 200, body = MerchantView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[patch("/v1/merchants/{merchant}")]
pub(crate) async fn set_merchant(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
    Json(document): Json,
) -> Result<HttpResponse, Problem> {
    let actor = operator(&caller)?;
    let change = document.read(object(SettingsChange::read))?;
    let stored =
        merchants::set(&app, actor, &merchant, change, document.value().to_value()).await?;
    Ok(HttpResponse::Ok().json(MerchantView::from(stored)))
}
