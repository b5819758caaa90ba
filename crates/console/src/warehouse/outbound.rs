//! Outbound ASNs: shipments that leave a warehouse.

use actix_web::{get, web};
use api::warehouse::{ShipmentDetails, ShipmentSummary, ShipmentView};
use askama::Template;
use futures_util::future::join;
use pages::{
    api::{Part, Service},
    form::Fields,
    path,
};

use super::{ASN_CONDITIONS, list, load_messages, look_up_asn, record_url};
use crate::{
    Page, PageResult, Section, SignedIn, html,
    list::List,
    markup::{link, text},
    record_list::{load, words},
    states::Shown as _,
    table::Table,
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_shipments).service(show_shipment);
}

static LIST: List = List {
    pages: ["First", "Next"],
    ..list(
        ("/warehouse", "Outbound ASNs"),
        "v1/outbound_shipments",
        ASN_CONDITIONS,
        [
            "There is no outbound ASN yet. A warehouse reports one when a shipment leaves it.",
            "No outbound ASN matches this filter.",
        ],
    )
};

#[get("/warehouse")]
async fn list_shipments(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    if let Some(lookup) = look_up_asn(&query) {
        return Ok(lookup);
    }
    let (view, shipments) = LIST.load::<ShipmentSummary>(&signed_in, &query, &[]).await?;
    let page = signed_in.page(LIST.section);
    let url =
        |it: &ShipmentSummary| record_url(it.merchant.as_str(), "outbound-asns", &it.asn_number);
    let table = Table::of(LIST.title, &shipments)
        .wrapped_head("ASN", |it| link(url(it), &it.asn_number))
        .cell("State", |it| it.status.badge())
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.merchant))
        .cell("Type", |it| text(words(&it.shipment_type)))
        .number("Units", |it| text(it.units))
        .cell("Ship date", |it| page.time(it.ship_date))
        .cell("Reported", |it| page.time(it.created_at))
        .cell("Changed", |it| page.time(it.updated_at))
        .table();
    view.show(page, table)
}

#[derive(Template)]
#[template(path = "warehouse_outbound_asn.html")]
struct ShipmentPage {
    page: Page,
    merchant: String,
    shipment: ShipmentView,
    messages: Part<Table>,
}

#[get("/merchants/{merchant}/outbound-asns/{number}")]
async fn show_shipment(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, number) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let shipment_path = path!("v1", "outbound_shipments", number);
    let key = format!("asn:{number}");
    let (shipment, messages) = join(
        load::<ShipmentDetails>(&signed_in, Service::WarehouseNotifier, own, &shipment_path, &[]),
        load_messages(&signed_in, &merchant, &key),
    )
    .await;
    let page = signed_in.page(Section::Warehouse);
    let shipment = shipment?.shipment;
    html(&ShipmentPage { page, merchant, shipment, messages: messages? })
}
