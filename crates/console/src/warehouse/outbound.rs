//! Outbound ASNs: shipments that leave a warehouse.

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join;
use pages::{
    api::{Part, Service},
    path,
    text::Moment,
};
use serde::Deserialize;

use super::{Filter, TABS, entries, load_messages, record_url};
use crate::{
    Page, PageResult, Section, SignedIn,
    deliveries::Entry,
    html,
    listing::{Listed, load, merchant_filter, words},
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_shipments).service(show_shipment);
}

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

#[derive(Debug, Deserialize)]
struct ShipmentList {
    outbound_shipments: Vec<Shipment>,
    next: Option<String>,
}

/// A shipment on a page.
struct ShipmentRow {
    url: String,
    merchant: String,
    kind: String,
    state: String,
    tone: &'static str,
    ships: Moment,
    created: Moment,
    updated: Moment,
    shipment: Shipment,
}

impl ShipmentRow {
    fn new(shipment: Shipment, within: Option<&str>, page: &Page) -> Self {
        let merchant = shipment.merchant.as_deref().or(within).unwrap_or_default().to_owned();
        Self {
            url: record_url(&merchant, "outbound-asns", &shipment.asn_number),
            kind: words(&shipment.shipment_type),
            state: words(&shipment.status),
            tone: match shipment.status.as_str() {
                "delivered" => "good",
                "canceled" => "warn",
                _ => "info",
            },
            ships: page.moment(shipment.ship_date),
            created: page.moment(shipment.created_at),
            updated: page.moment(shipment.updated_at),
            merchant,
            shipment,
        }
    }
}

#[derive(Template)]
#[template(path = "warehouse_outbound.html")]
struct ShipmentsPage {
    page: Page,
    tab: &'static str,
    filter: Filter,
    list: Listed<Vec<ShipmentRow>>,
    next: Option<String>,
}

#[get("/warehouse")]
async fn list_shipments(signed_in: SignedIn, filter: web::Query<Filter>) -> PageResult {
    let filter = filter.into_inner();
    if let Some(lookup) = filter.lookup() {
        return Ok(lookup);
    }
    let within = merchant_filter(&signed_in, &filter.merchant)?;
    let page = signed_in.page(Section::Warehouse);
    let (service, path) = (Service::WarehouseNotifier, "v1/outbound_shipments");
    let list: Result<ShipmentList, _> =
        load(&signed_in, service, within, path, &filter.request()).await;
    let next = list.as_ref().ok().and_then(|list| list.next.clone());
    let row = |shipment| ShipmentRow::new(shipment, within, &page);
    let list = Listed::new(list)?
        .map(|list| list.outbound_shipments.into_iter().map(row).collect::<Vec<_>>());
    html(&ShipmentsPage { page, tab: "/warehouse", filter, list, next })
}

#[derive(Template)]
#[template(path = "warehouse_outbound_asn.html")]
struct ShipmentPage {
    page: Page,
    row: ShipmentRow,
    messages: Part<Vec<Entry>>,
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
    let page = signed_in.page(Section::Warehouse);
    let row = ShipmentRow::new(shipment?, own, &page);
    let messages = entries(messages, &page)?;
    html(&ShipmentPage { page, row, messages })
}
