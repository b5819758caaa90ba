//! Merchants, for operators. A merchant can read its own settings.

use actix_web::{HttpResponse, get, patch, post, web};
use domain::{
    json::object,
    merchant::{SettingsChange, read_new_merchant},
};
use platform::{
    Problem,
    http::{ErrorBody, Json, Page},
    identity::Caller,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::require_operator;
use crate::{
    App,
    error::Error,
    merchants::{self, MerchantPage, MerchantView},
    store,
};

/// A merchant to be created. Omitted settings have defaults.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct CreateMerchantRequest {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$", example = "acme")]
    identifier: String,
    name: String,
    #[serde(flatten)]
    settings: UpdateMerchantRequest,
}

/// Settings to be changed. Omitted settings stay as they are. `base_url` and `support_contact` can be
/// null.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct UpdateMerchantRequest {
    name: Option<String>,
    time_zone: Option<String>,
    currency: Option<String>,
    managed_receiving: Option<bool>,
    return_window_days: Option<u16>,
    final_sale_tags: Option<Vec<String>>,
    returns: Option<ReturnPolicyChange>,
    strict_amounts: Option<bool>,
    strict_refund_dates: Option<bool>,
    support_contact: Option<domain::merchant::SupportContact>,
    base_url: Option<String>,
}

/// Changes to the return policy. A list replaces the previous list. `gift_card` can be null.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct ReturnPolicyChange {
    reasons: Option<Vec<domain::merchant::ReturnReason>>,
    methods: Option<Vec<domain::merchant::MethodOffer>>,
    free_exchange_shipping: Option<bool>,
    gift_card: Option<domain::returns::GiftCardOffer>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RepublishResponse {
    /// Number of published merchants.
    merchants: u64,
}

/// Create a merchant
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])), request_body = CreateMerchantRequest,
    responses(
        (status = 201, body = MerchantView),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 409, description = "A merchant with this identifier exists", body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[post("/v1/merchants")]
pub(crate) async fn create_merchant(
    app: web::Data<App>,
    caller: Caller,
    Json(body): Json,
) -> Result<HttpResponse, Problem> {
    let actor = require_operator(&caller)?;
    let (id, settings) = body.read(object(read_new_merchant))?;
    let merchant = merchants::create(&app, actor, id, settings).await?;
    Ok(HttpResponse::Created().json(merchant))
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
    require_operator(&caller)?;
    let mut conn = app.pool.get().await?;
    let mut found = store::merchants::page(&mut conn, page.after(), page.limit.rows()).await?;
    let next = page.limit.next(&mut found, |stored| stored.merchant.identifier.to_string());
    let merchants = found.into_iter().map(MerchantView::from).collect();
    Ok(HttpResponse::Ok().json(MerchantPage { merchants, next }))
}

/// Republish all merchants and unexpired revocations
///
/// Use it after a service lost its replica of the merchants, and after the database of auth was
/// restored from a backup.
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])),
    responses(
        (status = 200, body = RepublishResponse), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[post("/v1/merchants/republish")]
pub(crate) async fn republish_merchants(
    app: web::Data<App>,
    caller: Caller,
) -> Result<HttpResponse, Problem> {
    let merchants = merchants::republish(&app, require_operator(&caller)?).await?;
    Ok(HttpResponse::Ok().json(RepublishResponse { merchants }))
}

/// Show a merchant
///
/// A token of the merchant itself has access too.
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
    let is_own =
        caller.claims.merchant.as_ref().is_some_and(|own| own.as_str() == merchant.as_str());
    if !is_own && !caller.is_operator() {
        // A merchant must not find out which other merchants exist.
        return Err(Error::MerchantNotFound(merchant.into_inner()).into());
    }
    let stored = store::merchants::find(&mut *app.pool.get().await?, &merchant).await?;
    Ok(HttpResponse::Ok().json(MerchantView::from(stored)))
}

/// Update a merchant
#[utoipa::path(
    tag = "merchants", security(("bearer" = [])), params(("merchant" = String, Path)), request_body = UpdateMerchantRequest,
    responses(
        (status = 200, body = MerchantView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[patch("/v1/merchants/{merchant}")]
pub(crate) async fn update_merchant(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
    Json(body): Json,
) -> Result<HttpResponse, Problem> {
    let actor = require_operator(&caller)?;
    let change = body.read(object(SettingsChange::read))?;
    let request = body.value().to_value();
    let merchant = merchants::update(&app, actor, &merchant, change, request).await?;
    Ok(HttpResponse::Ok().json(merchant))
}
