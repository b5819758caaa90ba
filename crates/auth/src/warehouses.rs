//! Warehouses of merchants.
//!
//! See docs/decisions/merchant-warehouses.md.

use domain::merchant::Merchant;
use domain::warehouse::{MAX_WAREHOUSES, Warehouse};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    App,
    error::Error,
    merchants::{Condition, check_version, update_with},
    store::merchants,
};

/// A warehouse with our identifier.
#[derive(Serialize, ToSchema)]
pub(crate) struct WarehouseView {
    #[schema(example = "reno")]
    identifier: String,
    #[serde(flatten)]
    warehouse: Warehouse,
}

/// The warehouses of a merchant, sorted by identifier.
#[derive(Serialize, ToSchema)]
pub(crate) struct WarehouseList {
    warehouses: Vec<WarehouseView>,
}

pub(crate) async fn list(app: &App, merchant: &str) -> Result<WarehouseList, Error> {
    let stored = merchants::find(&mut *app.pool.get().await?, merchant).await?;
    let view = |(identifier, warehouse)| WarehouseView { identifier, warehouse };
    Ok(WarehouseList { warehouses: stored.merchant.warehouses.into_iter().map(view).collect() })
}

pub(crate) async fn show(
    app: &App,
    merchant: &str,
    identifier: &str,
) -> Result<WarehouseView, Error> {
    let mut stored = merchants::find(&mut *app.pool.get().await?, merchant).await?;
    let found = stored.merchant.warehouses.remove(identifier);
    let warehouse = found.ok_or_else(|| not_found(&stored.merchant, identifier))?;
    Ok(WarehouseView { identifier: identifier.to_owned(), warehouse })
}

/// Creates or replaces a warehouse.
pub(crate) async fn set(
    app: &App,
    actor: &str,
    merchant: &str,
    identifier: &str,
    warehouse: Warehouse,
    condition: Condition,
) -> Result<WarehouseView, Error> {
    let identifier = identifier.to_owned();
    let view = WarehouseView { identifier: identifier.clone(), warehouse: warehouse.clone() };
    update_with(app, actor, merchant, "warehouse.set", |merchant, _| {
        let exists = merchant.warehouses.contains_key(&identifier);
        if exists && condition.must_be_new {
            return Err(Error::WarehouseExists(merchant.identifier.clone(), identifier.clone()));
        }
        check_version(merchant, condition.expected_version)?;
        if !exists && merchant.warehouses.len() >= MAX_WAREHOUSES {
            return Err(Error::TooManyWarehouses(merchant.identifier.clone()));
        }
        if warehouse.settings.receives_returns {
            for other in merchant.warehouses.values_mut() {
                other.settings.receives_returns = false;
            }
        }
        let detail = json!({ "identifier": identifier, "warehouse": warehouse });
        merchant.warehouses.insert(identifier.clone(), warehouse.clone());
        Ok(((), detail))
    })
    .await?;
    Ok(view)
}

pub(crate) async fn delete(
    app: &App,
    actor: &str,
    merchant: &str,
    identifier: &str,
    expected: Option<i64>,
) -> Result<(), Error> {
    update_with(app, actor, merchant, "warehouse.deleted", |merchant, _| {
        if !merchant.warehouses.contains_key(identifier) {
            return Err(not_found(merchant, identifier));
        }
        check_version(merchant, expected)?;
        merchant.warehouses.remove(identifier);
        Ok(((), json!({ "identifier": identifier })))
    })
    .await?;
    Ok(())
}

fn not_found(merchant: &Merchant, identifier: &str) -> Error {
    Error::WarehouseNotFound(merchant.identifier.clone(), identifier.to_owned())
}
