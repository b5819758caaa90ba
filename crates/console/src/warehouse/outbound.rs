//! Outbound ASNs: shipments that leave a warehouse.

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join;
use pages::{
    api::{Part, Service},
    form::Fields,
    path,
};
use serde::Deserialize;

use super::{ASN_CONDITIONS, list, load_messages, look_up_asn, record_url};
use crate::{
    Page, PageResult, Section, SignedIn, html,
    list::List,
    listing::{load, words},
    markup::{badge, link, text},
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

/// A shipment as warehouse-notifier describes it. The list leaves out some fields.
#[derive(Debug, Deserialize)]
struct Shipment {
    merchant: Option<String>,
    asn_number: String,
    shipment_type: String,
    status: String,
    ship_date: DateTime<Utc>,
    #[serde(default)]
    shipment_identifier: String,
    #[serde(default)]
    channel: String,
    #[serde(default)]
    units: u64,
    #[serde(default)]
    messages: Vec<Message>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
struct Message {
    asn_number: String,
    units: u64,
}

impl Shipment {
    /// The merchant. Lists within one merchant may leave out its name.
    fn merchant<'a>(&'a self, within: Option<&'a str>) -> &'a str {
        self.merchant.as_deref().or(within).unwrap_or_default()
    }

    fn tone(&self) -> &'static str {
        match self.status.as_str() {
            "delivered" => "good",
            "canceled" => "warn",
            _ => "info",
        }
    }
}

#[get("/warehouse")]
async fn list_shipments(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    if let Some(lookup) = look_up_asn(&query) {
        return Ok(lookup);
    }
    let (view, shipments) = LIST.load::<Shipment>(&signed_in, &query, &[]).await?;
    let (page, within) = (signed_in.page(LIST.section), view.within.as_deref());
    let url = |it: &Shipment| record_url(it.merchant(within), "outbound-asns", &it.asn_number);
    let table = Table::of(LIST.title, &shipments)
        .wrapped_head("ASN", |it| link(url(it), &it.asn_number))
        .cell("State", |it| badge(it.tone(), words(&it.status)))
        .cell_if(page.person.is_staff(), "Merchant", |it| text(it.merchant(within)))
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
    shipment: Shipment,
    messages: Part<Table>,
}

#[get("/merchants/{merchant}/outbound-asns/{number}")]
async fn show_shipment(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, number) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let shipment_path = path!("v1", "outbound_shipments", number);
    let key = format!("asn:{number}");
    let (shipment, messages) = join(
        load::<Shipment>(&signed_in, Service::WarehouseNotifier, own, &shipment_path, &[]),
        load_messages(&signed_in, &merchant, &key),
    )
    .await;
    let (page, shipment) = (signed_in.page(Section::Warehouse), shipment?);
    let merchant = shipment.merchant(own).to_owned();
    html(&ShipmentPage { page, merchant, shipment, messages: messages? })
}
