//! Warehouse records: outbound and inbound ASNs, receipts and drop shipments.

mod drop_shipments;
mod inbound;
mod outbound;
mod receipts;

use actix_web::{HttpResponse, get, web};
use api::{
    delivery::DeliveryView,
    warehouse::{RecordKind, RecordView},
};
use pages::{
    api::{ApiError, Part, Service},
    form::Fields,
    path,
};

use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    deliveries::Entry,
    filter::Condition,
    list::List,
    markup::{badge, link, text},
    notice::redirect,
    record_list::{Records, load, query_string},
    states::Shown as _,
    table::Table,
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(find_asn)
        .configure(outbound::routes)
        .configure(inbound::routes)
        .configure(receipts::routes)
        .configure(drop_shipments::routes);
}

/// URL and name of each list.
const TABS: &[(&str, &str)] = &[
    ("/warehouse", "Outbound ASNs"),
    ("/warehouse/inbound", "Inbound ASNs"),
    ("/warehouse/receipts", "Receipts"),
    ("/warehouse/drop-shipments", "Drop shipments"),
];

/// A list of warehouse records.
const fn list(
    url_and_title: (&'static str, &'static str),
    api: &'static str,
    conditions: &'static [Condition],
    empty: [&'static str; 2],
) -> List {
    let source = (Service::WarehouseNotifier, api);
    let list = List::new(Section::Warehouse, url_and_title, source, conditions, empty);
    List { heading: "Warehouse", tabs: TABS, ..list }
}

/// Lists of ASNs have no filter by number: the look-up finds one.
const ASN_CONDITIONS: &[Condition] =
    &[Condition::MERCHANT, Condition::text("asn_number", "ASN number").not_sent()];

/// Leads to the look-up of the number in the filter, if there is one.
fn look_up_asn(query: &Fields) -> Option<HttpResponse> {
    let number = query.text("asn_number");
    (!number.is_empty()).then(|| redirect(&lookup_url(query.text("merchant"), number)))
}

fn record_url(merchant: &str, kind: &str, number: &str) -> String {
    format!("/{}", path!("merchants", merchant, kind, number))
}

/// The newest messages of an ordering key.
async fn load_messages(
    signed_in: &SignedIn,
    merchant: &str,
    ordering_key: &str,
) -> Result<Part<Table>, ApiError> {
    let query = [("merchant", merchant), ("ordering_key", ordering_key), ("limit", "20")];
    let list: Result<Records<DeliveryView>, _> =
        load(signed_in, Service::WarehouseNotifier, None, "v1/deliveries", &query).await;
    let page = signed_in.page(Section::Warehouse);
    Part::new(list.map(|list| messages(list.records, &page)))
}

fn messages(deliveries: Vec<DeliveryView>, page: &Page) -> Table {
    let entry = |delivery| Entry { service: Service::WarehouseNotifier, delivery };
    let entries: Vec<_> = deliveries.into_iter().map(entry).collect();
    Table::of("Deliveries of the messages", &entries)
        .head("Message", |it| link(it.url(), &it.delivery.event))
        .cell("State", |it| badge(it.delivery.tone(), it.delivery.state))
        .cell("Last response", |it| text(it.last_response()))
        .cell("Created", |it| page.time(it.delivery.created_at))
        .table()
}

/// The list in which a record is, and the segment of its URL.
pub(crate) fn place(record: &RecordView) -> (&'static str, &'static str) {
    match record.kind {
        RecordKind::InboundAsn => ("Inbound ASNs", "inbound-asns"),
        RecordKind::OutboundShipment => ("Outbound ASNs", "outbound-asns"),
        RecordKind::DropShipment => ("Drop shipments", "drop-shipments"),
    }
}

pub(crate) fn url_of(record: &RecordView) -> String {
    record_url(record.merchant.as_str(), place(record).1, &record.number)
}

/// The records of a merchant with a number.
pub(crate) async fn find_records(
    signed_in: &SignedIn,
    merchant: &str,
    filter: &str,
    number: &str,
) -> Result<Vec<RecordView>, ApiError> {
    let query = [(filter, number), ("limit", "20")];
    let service = Service::WarehouseNotifier;
    let path = "v1/warehouse_records";
    let found: Records<RecordView> = load(signed_in, service, Some(merchant), path, &query).await?;
    Ok(found.records)
}

/// Leads to the ASN with this number. An outbound and an inbound ASN can have the same number.
#[get("/merchants/{merchant}/asns/{number}")]
async fn find_asn(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, number) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let found = find_records(&signed_in, own, "asn_number", &number).await?;
    match found.as_slice() {
        [] => Err(PageError::NotFound),
        [only] => Ok(redirect(&url_of(only))),
        _ => Ok(redirect(&lookup_url(&merchant, &number))),
    }
}

/// The look-up of a number within a merchant, or across merchants.
fn lookup_url(merchant: &str, number: &str) -> String {
    format!("/lookup?{}", query_string(&[("merchant", merchant), ("q", number)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_page_of_its_kind() {
        let record = |kind| RecordView {
            merchant: "acme".parse().unwrap(),
            kind,
            number: "A/1".into(),
            created_at: chrono::DateTime::default(),
        };
        let asn = record(RecordKind::InboundAsn);
        assert_eq!(url_of(&asn), "/merchants/acme/inbound-asns/A%2F1");
        assert_eq!(place(&record(RecordKind::OutboundShipment)).1, "outbound-asns");
    }
}
