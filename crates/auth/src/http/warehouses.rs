//! Warehouses of merchants, for operators and for the merchants themselves.

use actix_web::{HttpRequest, HttpResponse, delete, get, put, web};
use domain::{
    json::{ValidationError, object},
    warehouse::Warehouse,
};
use platform::{
    Problem,
    http::{ErrorBody, Json, Sequential},
    identity::Caller,
};

use super::{check_merchant, condition, expected_version, require_manage, require_read};
use crate::{
    App,
    error::Error,
    warehouses::{self, WarehouseList, WarehouseView},
};

/// The merchant and our identifier of the warehouse in the URL.
type WarehousePath = web::Path<(String, String)>;

/// List the warehouses of a merchant
///
/// Sorted by identifier. There are at most 200.
#[utoipa::path(
    tag = "warehouses", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])), params(("merchant" = String, Path)),
    responses((status = 200, body = WarehouseList))
)]
#[get("/v1/merchants/{merchant}/warehouses")]
pub(crate) async fn list_warehouses(
    app: web::Data<App>,
    caller: Caller,
    merchant: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    check_merchant(&caller, &merchant)?;
    Ok(HttpResponse::Ok().json(warehouses::list(&app, &merchant).await?))
}

/// Show a warehouse
#[utoipa::path(
    tag = "warehouses", security(("bearer" = ["read"]), ("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), ("identifier" = String, Path)),
    responses((status = 200, body = WarehouseView))
)]
#[get("/v1/merchants/{merchant}/warehouses/{identifier}")]
pub(crate) async fn show_warehouse(
    app: web::Data<App>,
    caller: Caller,
    path: WarehousePath,
) -> Result<HttpResponse, Problem> {
    require_read(&caller)?;
    check_merchant(&caller, &path.0)?;
    Ok(HttpResponse::Ok().json(warehouses::show(&app, &path.0, &path.1).await?))
}

/// Create or replace a warehouse
///
/// Reports of shipments can name the warehouse, and then take its identifiers and its address. Labels of returned parcels
/// have the address of the warehouse that receives returns, of which there is one at most.
#[utoipa::path(
    tag = "warehouses", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), ("identifier" = String, Path, example = "reno"), ("If-Match" = Option<String>, Header, description = "The `version` of the merchant that the caller has read"), ("If-None-Match" = Option<String>, Header, description = "`*` creates only: a warehouse that exists is not replaced")),
    request_body(content = Warehouse, example = json!({ "external_identifier": "DC-7", "address": { "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501" }, "settings": { "stock_transfer_identifier": "STO-7", "country_code": "US", "receives_returns": true } })),
    responses(
        (status = 200, body = WarehouseView),
        (status = 409, description = "The merchant has 200 warehouses", body = ErrorBody),
        (status = 412, description = "The merchant has another version than `If-Match`, or the warehouse exists and `If-None-Match` is `*`", body = ErrorBody),
    )
)]
#[put("/v1/merchants/{merchant}/warehouses/{identifier}")]
pub(crate) async fn set_warehouse(
    app: web::Data<App>,
    request: HttpRequest,
    Sequential(caller, body): Sequential<Caller, Json>,
    path: WarehousePath,
) -> Result<HttpResponse, Problem> {
    let actor = require_manage(&caller)?;
    check_merchant(&caller, &path.0)?;
    let named = Warehouse::check_identifier(&path.1);
    let read = body.read_with(|document| document.read(object(Warehouse::read))).await?;
    if let Err(fault) = named {
        let others = read.err().map(|error| error.errors).unwrap_or_default();
        let errors = [fault].into_iter().chain(others).collect();
        return Err(Error::from(ValidationError { errors, omitted: 0 }).into());
    }
    let new = read?;
    let condition = condition(&request);
    let set = warehouses::set(&app, actor, &path.0, &path.1, new, condition).await?;
    Ok(HttpResponse::Ok().json(set))
}

/// Delete a warehouse
///
/// Shipments that were reported keep their identifiers and addresses.
#[utoipa::path(
    tag = "warehouses", security(("bearer" = ["manage"]), ("bearer" = ["operator"])),
    params(("merchant" = String, Path), ("identifier" = String, Path), ("If-Match" = Option<String>, Header, description = "The `version` of the merchant that the caller has read")),
    responses(
        (status = 204),
        (status = 412, description = "The merchant has another version than `If-Match`", body = ErrorBody),
    )
)]
#[delete("/v1/merchants/{merchant}/warehouses/{identifier}")]
pub(crate) async fn delete_warehouse(
    app: web::Data<App>,
    request: HttpRequest,
    caller: Caller,
    path: WarehousePath,
) -> Result<HttpResponse, Problem> {
    let actor = require_manage(&caller)?;
    check_merchant(&caller, &path.0)?;
    let expected = expected_version(&request);
    warehouses::delete(&app, actor, &path.0, &path.1, expected).await?;
    Ok(HttpResponse::NoContent().finish())
}
