//! Drop shipments: confirmations and cancellations of orders that a warehouse ships for a merchant.

use actix_web::{get, web};
use api::warehouse::DropShipmentView;
use askama::Template;
use futures_util::future::join;
use pages::{
    api::{Part, Service},
    form::Fields,
};

use super::{list, load_messages, record_url};
use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    filter::Condition,
    html,
    list::List,
    markup::{badge, link, text},
    record_list::{Records, load, words},
    table::Table,
};

const PATH: &str = "v1/drop_shipments";

const CONDITIONS: &[Condition] =
    &[Condition::MERCHANT, Condition::text("order", "Order").sent_as("order_identifier")];

static LIST: List = List {
    within_merchant: Some(("order", "name the merchant of the order, too")),
    ..list(
        ("/warehouse/drop-shipments", "Drop shipments"),
        PATH,
        CONDITIONS,
        [
            "There is no drop shipment yet. A warehouse confirms or cancels each order that it ships for a \
             merchant.",
            "No drop shipment matches this filter.",
        ],
    )
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_drop_shipments).service(show_drop_shipment);
}

fn tone(report: &DropShipmentView) -> &'static str {
    if report.kind == "confirmation" { "good" } else { "warn" }
}

#[get("/warehouse/drop-shipments")]
async fn list_drop_shipments(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let (view, reports) = LIST.load::<DropShipmentView>(&signed_in, &query, &[]).await?;
    let page = signed_in.page(LIST.section);
    let table = Table::of(LIST.title, &reports)
        .wrapped_head("Order", |it| {
            link(record_url(&it.merchant, "drop-shipments", &it.order), &it.order)
        })
        .cell("Report", |it| badge(tone(it), words(&it.kind)))
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.merchant))
        .cell("Reported", |it| page.time(it.created_at))
        .table();
    view.show(page, table)
}

#[derive(Template)]
#[template(path = "warehouse_drop_shipment.html")]
struct DropShipmentPage {
    page: Page,
    merchant: String,
    order: String,
    reports: Vec<DropShipmentView>,
    messages: Part<Table>,
}

/// The reports about one order.
#[get("/merchants/{merchant}/drop-shipments/{order}")]
async fn show_drop_shipment(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, order) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let query = [("order_identifier", order.as_str())];
    let key = format!("order:{order}");
    let (list, messages) = join(
        load::<Records<_>>(&signed_in, Service::WarehouseNotifier, own, PATH, &query),
        load_messages(&signed_in, &merchant, &key),
    )
    .await;
    let page = signed_in.page(Section::Warehouse);
    let reports = list?.records;
    if reports.is_empty() {
        return Err(PageError::NotFound);
    }
    html(&DropShipmentPage { page, merchant, order, reports, messages: messages? })
}
