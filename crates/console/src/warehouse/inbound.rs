//! Inbound ASNs: shipments that a warehouse expects, with the units that arrived.

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join3;
use pages::{
    api::{Part, Service},
    path,
    text::Moment,
};
use serde::Deserialize;

use super::{
    Filter, TABS, entries, load_messages,
    receipts::{self, ReceiptList, ReceiptRow, Reference},
    record_url,
};
use crate::{
    Page, PageResult, Section, SignedIn,
    deliveries::Entry,
    html,
    listing::{Identifier, Listed, load, merchant_filter},
};

/// Large ASNs have thousands of lines.
const MAX_LINES: usize = 300;

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_asns).service(show_asn);
}

/// An ASN in a list.
#[derive(Debug, Deserialize)]
struct AsnSummary {
    #[serde(rename = "merchant")]
    owner: Option<String>,
    asn_number: Identifier,
    shipment_identifier: Option<Identifier>,
    #[serde(default)]
    lines: u64,
    expected: i64,
    received: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
struct AsnList {
    inbound_asns: Vec<AsnSummary>,
    next: Option<String>,
}

/// An ASN with its lines. Its field `merchant` is the owner of the inventory, as the sender named it.
#[derive(Debug, Deserialize)]
struct Asn {
    shipment_identifier: Option<Identifier>,
    program_identifier: Option<Identifier>,
    from: Option<Location>,
    to: Option<Location>,
    reference: Option<Reference>,
    tracking_number: Option<Identifier>,
    expected: i64,
    received: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    #[serde(default)]
    lines: Vec<Line>,
}

#[derive(Debug, Deserialize)]
struct Location {
    identifier: Identifier,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Debug, Deserialize)]
struct Line {
    line_identifier: Identifier,
    sku: Option<String>,
    upc: Option<Identifier>,
    carton_identifier: Option<Identifier>,
    reference: Option<Reference>,
    #[serde(default)]
    quantity: i64,
    #[serde(default)]
    received: i64,
}

impl Line {
    fn product(&self) -> String {
        let upc = || self.upc.as_ref().map(Identifier::to_string);
        self.sku.clone().filter(|sku| !sku.is_empty()).or_else(upc).unwrap_or_default()
    }

    fn tone(&self) -> &'static str {
        progress_tone(self.received, self.quantity)
    }
}

fn progress_tone(received: i64, expected: i64) -> &'static str {
    match received {
        0 => "info",
        received if received < expected => "warn",
        _ => "good",
    }
}

struct AsnRow {
    url: String,
    merchant: String,
    number: String,
    shipment: String,
    lines: u64,
    progress: String,
    tone: &'static str,
    created: Moment,
    updated: Moment,
}

impl AsnRow {
    fn new(asn: AsnSummary, within: Option<&str>, page: &Page) -> Self {
        let merchant = asn.owner.as_deref().or(within).unwrap_or_default().to_owned();
        let number = asn.asn_number.to_string();
        Self {
            url: record_url(&merchant, "inbound-asns", &number),
            shipment: asn
                .shipment_identifier
                .as_ref()
                .map(Identifier::to_string)
                .unwrap_or_default(),
            lines: asn.lines,
            progress: format!("{} of {}", asn.received, asn.expected),
            tone: progress_tone(asn.received, asn.expected),
            created: page.moment(asn.created_at),
            updated: page.moment(asn.updated_at),
            merchant,
            number,
        }
    }
}

#[derive(Template)]
#[template(path = "warehouse_inbound.html")]
struct AsnsPage {
    page: Page,
    tab: &'static str,
    filter: Filter,
    list: Listed<Vec<AsnRow>>,
    next: Option<String>,
}

#[get("/warehouse/inbound")]
async fn list_asns(signed_in: SignedIn, filter: web::Query<Filter>) -> PageResult {
    let filter = filter.into_inner();
    if let Some(lookup) = filter.lookup() {
        return Ok(lookup);
    }
    let within = merchant_filter(&signed_in, &filter.merchant)?;
    let page = signed_in.page(Section::Warehouse);
    let (service, path) = (Service::WarehouseNotifier, "v1/inbound_asns");
    let list: Result<AsnList, _> = load(&signed_in, service, within, path, &filter.request()).await;
    let next = list.as_ref().ok().and_then(|list| list.next.clone());
    let row = |asn| AsnRow::new(asn, within, &page);
    let list =
        Listed::new(list)?.map(|list| list.inbound_asns.into_iter().map(row).collect::<Vec<_>>());
    html(&AsnsPage { page, tab: "/warehouse/inbound", filter, list, next })
}

#[derive(Template)]
#[template(path = "warehouse_inbound_asn.html")]
struct AsnPage {
    page: Page,
    merchant: String,
    number: String,
    tone: &'static str,
    created: Moment,
    updated: Moment,
    /// The number of lines that are not shown.
    hidden: usize,
    receipts: Part<Vec<ReceiptRow>>,
    messages: Part<Vec<Entry>>,
    asn: Asn,
}

#[get("/merchants/{merchant}/inbound-asns/{number}")]
async fn show_asn(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, number) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let (asn_path, key) = (path!("v1", "inbound_asns", number), format!("inbound_asn:{number}"));
    let of_asn = [("asn_number", number.as_str()), ("limit", "20")];
    let (asn, receipts, messages) = join3(
        load::<Asn>(&signed_in, Service::WarehouseNotifier, own, &asn_path, &[]),
        load::<ReceiptList>(&signed_in, Service::WarehouseNotifier, own, receipts::PATH, &of_asn),
        load_messages(&signed_in, &merchant, &key),
    )
    .await;
    let page = signed_in.page(Section::Warehouse);
    let mut asn = asn?;
    let hidden = asn.lines.len().saturating_sub(MAX_LINES);
    asn.lines.truncate(MAX_LINES);
    html(&AsnPage {
        tone: progress_tone(asn.received, asn.expected),
        created: page.moment(asn.created_at),
        updated: page.moment(asn.updated_at),
        receipts: Part::new(receipts.map(|list| list.rows(own, &page)))?,
        messages: entries(messages, &page)?,
        hidden,
        page,
        merchant,
        number,
        asn,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asn_is_done_when_everything_arrived() {
        assert_eq!(progress_tone(0, 2), "info");
        assert_eq!(progress_tone(1, 2), "warn");
        assert_eq!(progress_tone(2, 2), "good");
    }
}
