//! Merchants, for operators. A merchant and support can read settings. A merchant can change the
//! appearance of its portal and the mails to its shoppers.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpRequest, HttpResponse, get, patch, post, web};
use domain::{
    access::Scope,
    json::{Document, JsonValue, object},
    merchant::{SettingsChange, read_new_merchant},
};
use platform::{
    Problem,
    http::{ErrorBody, Json, PageLimit, Query, Sequential},
    identity::Caller,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{check_merchant, expected_version, require_manage, require_operator, require_read};
use crate::{
    App,
    error::Error,
    merchants::{self, MerchantPage, MerchantView},
    store,
};

/// A merchant to be created. Omitted settings have defaults.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only describes the request in the OpenAPI document")]
pub(crate) struct CreateMerchantRequest {
    #[schema(pattern = "^[a-z0-9][a-z0-9-]{0,62}$", example = "acme")]
    identifier: String,
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    #[serde(flatten)]
    settings: SettingsChange,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct RepublishResponse {
    /// Number of published merchants.
    merchants: u64,
}

/// Create a merchant
///
/// Omitted settings have defaults. The identifier can never change. All services know the merchant within
/// seconds.
#[utoipa::path(
    tag = "merchants", security(("bearer" = ["operator"])),
    request_body(content = CreateMerchantRequest, example = json!({ "identifier": "acme", "name": "Acme Outdoor", "currency": "USD", "base_url": "https://acme.example/returns" })),
    responses(
        (status = 201, body = MerchantView),
        (status = 409, description = "A merchant with this identifier exists, or another merchant has one of the host names", body = ErrorBody),
    )
)]
#[post("/v1/merchants")]
pub(crate) async fn create_merchant(
    app: web::Data<App>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    let actor = require_operator(&caller)?;
    let guard = app.guard.clone();
    let read = object(move |body| read_new_merchant(body, &guard));
    let (id, settings) = body.read(read).await?;
    let merchant = merchants::create(&app, actor, id, settings).await?;
    Ok(HttpResponse::Created().json(merchant))
}

/// Search and page of a list of merchants.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct MerchantQuery {
    /// Words that begin words of the identifier or name, up to 200 characters
    q: Option<String>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page
    after: Option<String>,
}

impl MerchantQuery {
    /// The searched words, unless there are none.
    fn words(&self) -> Result<Option<&str>, Error> {
        match self.q.as_deref().map(str::trim) {
            Some(words) if words.contains('\0') || words.chars().count() > 200 => {
                Err(Error::BadQuery("q", "must have up to 200 characters and no NUL"))
            }
            words => Ok(words.filter(|words| !words.is_empty())),
        }
    }
}

/// List merchants
///
/// Sorted by identifier. With `q`, only merchants whose identifier or name has a word that begins with each
/// word of `q`. A token of a merchant gets this merchant only.
#[utoipa::path(
    tag = "merchants", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])), params(MerchantQuery),
    responses((status = 200, body = MerchantPage))
)]
#[get("/v1/merchants")]
pub(crate) async fn list_merchants(
    app: web::Data<App>,
    caller: Caller,
    query: Query<MerchantQuery>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    let own = caller.merchant_scope();
    let words = query.words()?;
    let after = query.after.as_deref().unwrap_or("");
    let rows = query.limit.rows();
    let mut conn = app.pool.reader(own.map(|merchant| merchant.as_str())).await?;
    let mut found = store::merchants::page(&mut conn, own, words, after, rows).await?;
    let next = query.limit.next(&mut found, |stored| stored.merchant.identifier.to_string());
    drop(conn);
    let mut merchants = Vec::with_capacity(found.len());
    for stored in found {
        merchants.push(MerchantView::new(&app, stored).await?);
    }
    Ok(HttpResponse::Ok().json(MerchantPage { merchants, next }))
}

/// Republish all merchants and unexpired revocations
///
/// Use it after a service was added or lost its replica of the merchants, and after the database of
/// auth was restored from a backup.
#[utoipa::path(
    tag = "merchants", security(("bearer" = ["operator"])),
    responses((status = 200, body = RepublishResponse))
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
/// A token of the merchant itself needs no scope.
#[utoipa::path(
    tag = "merchants", security(("bearer" = ["read"]), ("bearer" = ["operator"]), ("bearer" = [])), params(("merchant" = String, Path)),
    responses((status = 200, body = MerchantView))
)]
#[get("/v1/merchants/{merchant}")]
pub(crate) async fn show_merchant(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    check_merchant(&caller, &merchant)?;
    // A merchant, a warehouse and a carrier must not find out which merchants exist.
    if caller.claims.merchant.is_none() && caller.require(Scope::Read).is_err() {
        return Err(Error::MerchantNotFound(merchant.into_inner()).into());
    }
    let stored = store::merchants::find(&mut *app.pool.get().await?, &merchant).await?;
    Ok(HttpResponse::Ok().json(MerchantView::new(&app, stored).await?))
}

/// Update a merchant
///
/// Omitted settings stay as they are. All services use the new settings within seconds. The scope `manage`
/// can change `appearance` and `mails` of its own merchant and nothing else.
#[utoipa::path(
    tag = "merchants", security(("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("merchant" = String, Path), ("If-Match" = Option<String>, Header, description = "The `version` of the merchant that the caller has read")),
    request_body(content = SettingsChange, example = json!({ "return_window_days": 45, "strict_amounts": true })),
    responses(
        (status = 200, body = MerchantView),
        (status = 409, description = "Another merchant has one of the host names", body = ErrorBody),
        (status = 412, description = "The merchant has another version than `If-Match`", body = ErrorBody),
    )
)]
#[patch("/v1/merchants/{merchant}")]
pub(crate) async fn update_merchant(
    app: web::Data<App>,
    request: HttpRequest,
    Sequential(caller, body): Sequential<Caller, Json>,
    merchant: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let guard = app.guard.clone();
    let read = move |document: &Document| {
        let change = document.read(object(|body| SettingsChange::read(body, &guard)));
        (is_for_merchants(document), change, document.value().to_value())
    };
    let (is_for_merchants, change, document) = body.read_with(read).await?;
    let actor = if is_for_merchants {
        let actor = require_manage(&caller)?;
        check_merchant(&caller, &merchant)?;
        actor
    } else {
        require_operator(&caller)?
    };
    let change = match change {
        Ok(change) => change,
        Err(invalid) => {
            return Err(merchants::faults(&app, &merchant, &document, invalid).await?.into());
        }
    };
    let expected = expected_version(&request);
    let merchant = merchants::update(&app, actor, &merchant, change, document, expected).await?;
    Ok(HttpResponse::Ok().json(merchant))
}

/// Whether the request changes only what a merchant may change itself.
fn is_for_merchants(body: &Document) -> bool {
    let JsonValue::Object(members) = body.value() else { return false };
    let own = ["appearance", "mails"].into_iter().filter(|name| members.get(name).is_some());
    let own = own.count();
    own > 0 && own == members.len()
}
