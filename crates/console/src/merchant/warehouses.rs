//! The warehouses of a merchant.

use actix_web::{get, http::StatusCode, post, web};
use askama::Template;
use domain::warehouse::{ReceiverAddress, Warehouse};
use futures_util::future::join;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Frame, Merchant, Tab, page, require_manage,
    version::{NOT_DELETED, Version, is_outdated},
};
use crate::{
    Notice, Page, PageError, PageResult, Posted, SignedIn,
    changes::{self, Change},
    confirm::ConfirmPage,
    error::sentence,
    form::{Form, Input, null_if_empty},
    html, html_with,
    markup::{button, or_dash, row, text, text_or_dash},
    record_list::Records,
    rejected,
    table::Table,
};

/// The inputs of the form.
const INPUTS: &[Input] = &[
    Input::text("identifier", "Our identifier")
        .hint("1 to 63 letters, digits, hyphens or underscores. It can never change.")
        .required(),
    Input::text("external_identifier", "External identifier")
        .hint("The identifier in the merchant’s systems, which messages have instead of ours."),
    Input::text("stock_transfer_identifier", "Stock transfer identifier")
        .at("settings.stock_transfer_identifier")
        .hint("The identifier of this warehouse as the destination of stock transfers."),
    Input::text("name", "Name")
        .at("address.name")
        .hint("Leave all fields empty for a warehouse without an address."),
    Input::text("company", "Company").at("address.company"),
    Input::text("street", "Street").at("address.street"),
    Input::text("street2", "Second line of the street").at("address.street2"),
    Input::text("city", "City").at("address.city"),
    Input::text("state", "State").at("address.state"),
    Input::text("zip", "ZIP code").at("address.zip"),
];

/// The request. The identifier is in its path, and an address whose fields are all empty is left out.
fn body(form: &mut Form) -> Value {
    let mut body = form.body();
    body.remove("identifier");
    null_if_empty(body.get_mut("address"));
    body.into()
}

/// The merchant and the warehouse in a URL.
type WarehousePath = web::Path<(String, String)>;

#[derive(Deserialize)]
struct WarehouseView {
    identifier: String,
    #[serde(flatten)]
    warehouse: Warehouse,
}

#[derive(Template)]
#[template(path = "merchant_warehouses.html")]
struct WarehousesPage {
    page: Page,
    merchant: Frame,
    table: Table,
}

#[derive(Template)]
#[template(path = "merchant_warehouse.html")]
struct WarehousePage {
    page: Page,
    merchant: Frame,
    /// Whether the warehouse exists.
    is_set: bool,
    form: Form,
    version: Version,
    /// The values that differ, if another person changed the merchant in the meantime.
    changes: Vec<Change>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_warehouses)
        .service(show_new)
        .service(show_warehouse)
        .service(set_warehouse)
        .service(ask_to_delete)
        .service(delete_warehouse);
}

fn list_url(merchant: &str) -> String {
    format!("/{}", path!("merchants", merchant, "warehouses"))
}

#[get("/merchants/{merchant}/warehouses")]
async fn list_warehouses(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    let url = path!("v1", "merchants", id, "warehouses");
    let list = signed_in.api.get::<Records<WarehouseView>>(Service::Auth, &url, &[]);
    let (found, list) = join(Merchant::load(&signed_in, id), list).await;
    let merchant = Frame::new(&signed_in.person, &found?, Tab::Warehouses);
    let page = page(&signed_in);
    let warehouses = list?.records;
    let table = warehouse_table(&warehouses, &merchant, page.person.may_manage());
    html(&WarehousesPage { page, merchant, table })
}

fn warehouse_table(warehouses: &[WarehouseView], merchant: &Frame, may_manage: bool) -> Table {
    let address = |address: &ReceiverAddress| {
        let ReceiverAddress { name, street, city, state, zip, .. } = address;
        text(format!("{name}, {street}, {city}, {state} {zip}"))
    };
    Table::of("Warehouses", warehouses)
        .head("Warehouse", |it| text(&it.identifier))
        .cell("External identifier", |it| text_or_dash(it.warehouse.external_identifier.as_ref()))
        .cell("Stock transfers", |it| {
            text_or_dash(it.warehouse.settings.stock_transfer_identifier.as_ref())
        })
        .cell("Address", |it| or_dash(it.warehouse.address.as_ref().map(address)))
        .cell_if(may_manage, "Actions", |it| {
            let url = merchant.entry_url("warehouses", &it.identifier);
            let about = format!(" {}", it.identifier);
            let delete = button(format!("{url}/delete"), "Delete …", &about);
            row([button(url, "Change", &about), delete])
        })
        .table()
}

async fn form_page(
    signed_in: &SignedIn,
    merchant: &str,
    is_set: bool,
    form: Form,
) -> Result<WarehousePage, PageError> {
    let found = Merchant::load(signed_in, merchant).await?;
    Ok(WarehousePage {
        page: page(signed_in),
        merchant: Frame::new(&signed_in.person, &found, Tab::Warehouses),
        is_set,
        form,
        version: Version::of(&found),
        changes: Vec::new(),
    })
}

#[get("/merchants/{merchant}/new-warehouse")]
async fn show_new(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    require_manage(&signed_in)?;
    html(&form_page(&signed_in, id, false, Form::empty(INPUTS)).await?)
}

#[get("/merchants/{merchant}/warehouses/{warehouse}")]
async fn show_warehouse(signed_in: SignedIn, path: WarehousePath) -> PageResult {
    let id = signed_in.merchant(&path.0)?;
    require_manage(&signed_in)?;
    let url = path!("v1", "merchants", id, "warehouses", path.1);
    let stored: Value = signed_in.api.get(Service::Auth, &url, &[]).await?;
    let form = Form::of(INPUTS, &stored);
    html(&form_page(&signed_in, id, true, form).await?)
}

#[post("/merchants/{merchant}/warehouses")]
async fn set_warehouse(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form: fields } = posted;
    let id = signed_in.merchant(&merchant)?;
    require_manage(&signed_in)?;
    let version = Version::read(&fields);
    let mut form = Form::read(INPUTS, &fields);
    // A URL cannot end with an empty identifier. Auth rejects a space together with the faults of other fields.
    let identifier = Some(form.value("identifier")).filter(|text| !text.is_empty());
    let url = path!("v1", "merchants", id, "warehouses", identifier.unwrap_or(" "));
    let body = body(&mut form);
    let is_set = fields.is_checked("is_set");
    let api = version.api(&signed_in);
    let api = if is_set { api } else { api.with_header("if-none-match", "*") };
    let set: Result<Value, _> = api.send_json(Service::Auth, Method::PUT, None, &url, &body).await;
    match set {
        Ok(_) => return Ok(Notice::WarehouseSet.redirect(&list_url(id))),
        Err(error) if is_outdated(&error) => {
            let stored_at = is_set.then_some(url.as_str());
            return outdated(&signed_in, id, stored_at, form).await;
        }
        Err(ApiError::Conflict(body)) if body.code == "exists" => {
            form.reject("identifier", sentence(&body.message));
        }
        Err(ApiError::Invalid(body) | ApiError::Conflict(body)) => {
            form.reject_all(&body);
            // A rule needs the address, which has no input of its own.
            if let Some(error) = body.field("$.address") {
                form.reject("name", sentence(&error));
            }
        }
        Err(error) => return Err(error.into()),
    }
    let shown = form_page(&signed_in, id, is_set, form).await?;
    rejected(&WarehousePage { version, ..shown })
}

/// Shows the values of the warehouse that are stored now beside those of the form. Saving again replaces them. A form
/// for a new warehouse has no URL of one, and replaces none.
async fn outdated(
    signed_in: &SignedIn,
    merchant: &str,
    url: Option<&str>,
    mut form: Form,
) -> PageResult {
    let stored = match url {
        Some(url) => match signed_in.api.get::<Value>(Service::Auth, url, &[]).await {
            Ok(stored) => Some(Form::of(INPUTS, &stored)),
            Err(ApiError::NotFound) => None,
            Err(error) => return Err(error.into()),
        },
        None => None,
    };
    let differ = stored.as_ref().map(|stored| changes::between(stored.facts(), form.facts()));
    form.message = Some(changes::message("merchant"));
    let shown = form_page(signed_in, merchant, stored.is_some(), form).await?;
    let changes = differ.unwrap_or_default();
    html_with(StatusCode::CONFLICT, &WarehousePage { changes, ..shown })
}

#[get("/merchants/{merchant}/warehouses/{warehouse}/delete")]
async fn ask_to_delete(signed_in: SignedIn, path: WarehousePath) -> PageResult {
    let id = signed_in.merchant(&path.0)?;
    confirm_deletion(&signed_in, id, &path.1, None).await
}

/// Asks about the warehouse as it is set now: another person can replace it before the form is sent.
async fn confirm_deletion(
    signed_in: &SignedIn,
    id: &str,
    warehouse: &str,
    problem: Option<String>,
) -> PageResult {
    require_manage(signed_in)?;
    let found = Merchant::load(signed_in, id).await?;
    ConfirmPage {
        page: page(signed_in),
        title: format!("Delete the warehouse {warehouse} of {id}?"),
        effects: vec![
            "Reports of shipments that name it are rejected.".to_owned(),
            "Reported shipments and started returns stay as they are.".to_owned(),
        ],
        button: "Delete",
        key: None,
        rotation: None,
        version: Some(Version::of(&found).to_string()),
        problem,
        back: list_url(id),
    }
    .show()
}

#[post("/merchants/{merchant}/warehouses/{warehouse}/delete")]
async fn delete_warehouse(posted: Posted<Fields>, path: WarehousePath) -> PageResult {
    let Posted { signed_in, form } = posted;
    let id = signed_in.merchant(&path.0)?;
    require_manage(&signed_in)?;
    let url = path!("v1", "merchants", id, "warehouses", path.1);
    let api = Version::read(&form).api(&signed_in);
    let deleted: Result<Value, _> =
        api.send_json(Service::Auth, Method::DELETE, None, &url, &json!({})).await;
    match deleted {
        Ok(_) => Ok(Notice::WarehouseDeleted.redirect(&list_url(id))),
        Err(error) if is_outdated(&error) => {
            confirm_deletion(&signed_in, id, &path.1, Some(NOT_DELETED.to_owned())).await
        }
        Err(ApiError::Conflict(body)) => {
            confirm_deletion(&signed_in, id, &path.1, Some(sentence(&body.message))).await
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
