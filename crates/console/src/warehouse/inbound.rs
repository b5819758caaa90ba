//! Inbound ASNs: shipments that a warehouse expects, with the units that arrived.

use actix_web::{get, web};
use api::warehouse::{AsnSummary, ReceiptDetails};
use askama::Template;
use chrono::{DateTime, Utc};
use domain::warehouse::{Identifier, Location, Reference};
use futures_util::future::join3;
use pages::{
    api::{Part, Service},
    form::Fields,
    path,
};
use serde::Deserialize;

use super::{
    ASN_CONDITIONS, list, load_messages, look_up_asn,
    receipts::{self, receipt_table, reference_markup},
    record_url,
};
use crate::{
    Page, PageResult, Section, SignedIn, html,
    list::List,
    markup::{Markup, badge, link, or_dash, text, text_or_dash},
    record_list::{Records, load},
    table::Table,
};

/// Large ASNs have thousands of lines.
const MAX_LINES: usize = 300;

static LIST: List = List {
    pages: ["First", "Next"],
    ..list(
        ("/warehouse/inbound", "Inbound ASNs"),
        "v1/inbound_asns",
        ASN_CONDITIONS,
        [
            "There is no inbound ASN yet. A merchant or a warehouse registers one before units arrive.",
            "No inbound ASN matches this filter.",
        ],
    )
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_asns).service(show_asn);
}

/// An ASN with its lines. Its field `merchant` is the owner of the inventory, as the sender named it.
#[derive(Debug, Deserialize)]
struct Asn {
    shipment_identifier: Option<Identifier>,
    program_identifier: Option<Identifier>,
    from: Location,
    to: Location,
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
}

fn progress_tone(received: i64, expected: i64) -> &'static str {
    match received {
        0 => "info",
        received if received < expected => "warn",
        _ => "good",
    }
}

#[get("/warehouse/inbound")]
async fn list_asns(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    if let Some(lookup) = look_up_asn(&query) {
        return Ok(lookup);
    }
    let (view, asns) = LIST.load::<AsnSummary>(&signed_in, &query, &[]).await?;
    let page = signed_in.page(LIST.section);
    let table = Table::of(LIST.title, &asns)
        .wrapped_head("ASN", |it| {
            let number = it.asn_number.to_string();
            link(record_url(it.merchant.as_str(), "inbound-asns", &number), &number)
        })
        .cell("Received", |it| progress(it.received, it.expected))
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.merchant))
        .wrapped("Shipment", |it| it.shipment_identifier.as_ref().map(text).unwrap_or_default())
        .number("Lines", |it| text(it.lines))
        .cell("Registered", |it| page.time(it.created_at))
        .cell("Changed", |it| page.time(it.updated_at))
        .table();
    view.show(page, table)
}

#[derive(Template)]
#[template(path = "warehouse_inbound_asn.html")]
struct AsnPage {
    page: Page,
    merchant: String,
    number: String,
    lines: Table,
    /// The number of lines that are not shown.
    hidden: usize,
    receipts: Part<Table>,
    messages: Part<Table>,
    asn: Asn,
}

#[get("/merchants/{merchant}/inbound-asns/{number}")]
async fn show_asn(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, number) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let asn_path = path!("v1", "inbound_asns", number);
    let key = format!("inbound_asn:{number}");
    let of_asn = [("asn_number", number.as_str()), ("limit", "20")];
    let service = Service::WarehouseNotifier;
    let (asn, receipts, messages) = join3(
        load::<Asn>(&signed_in, service, own, &asn_path, &[]),
        load::<Records<ReceiptDetails>>(&signed_in, service, own, receipts::PATH, &of_asn),
        load_messages(&signed_in, &merchant, &key),
    )
    .await;
    let page = signed_in.page(Section::Warehouse);
    let asn = asn?;
    let receipts = receipts.map(|list| receipt_table(&list.records, false, &page));
    let shown = asn.lines.get(..MAX_LINES).unwrap_or(&asn.lines);
    html(&AsnPage {
        lines: line_table(shown, &merchant),
        hidden: asn.lines.len() - shown.len(),
        receipts: Part::new(receipts)?,
        messages: messages?,
        page,
        merchant,
        number,
        asn,
    })
}

fn line_table(lines: &[Line], merchant: &str) -> Table {
    Table::of("Lines of the ASN", lines)
        .head("Line", |it| text(&it.line_identifier))
        .cell("Product", |it| text(it.product()))
        .cell("Received", |it| progress(it.received, it.quantity))
        .cell("Carton", |it| text_or_dash(it.carton_identifier.as_ref()))
        .cell("Reference", |it| {
            or_dash(it.reference.as_ref().map(|it| reference_markup(it, merchant)))
        })
        .table()
}

/// The units that arrived, of those that are expected.
fn progress(received: i64, expected: i64) -> Markup {
    badge(progress_tone(received, expected), format!("{received} of {expected}"))
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
