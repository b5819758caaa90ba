//! Warehouse records: outbound and inbound ASNs, receipts and drop shipments.

mod drop_shipments;
mod inbound;
mod outbound;
mod receipts;

use actix_web::{HttpResponse, get, web};
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Part, Service},
    path,
};
use serde::Deserialize;

use crate::{
    Page, PageError, PageResult, SignedIn,
    deliveries::{DeliveryList, Entry},
    listing::{PAGE, load, query_string},
    notice::redirect,
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(find_asn)
        .configure(outbound::routes)
        .configure(inbound::routes)
        .configure(receipts::routes)
        .configure(drop_shipments::routes);
}

/// URL and name of each list.
const TABS: [(&str, &str); 4] = [
    ("/warehouse", "Outbound ASNs"),
    ("/warehouse/inbound", "Inbound ASNs"),
    ("/warehouse/receipts", "Receipts"),
    ("/warehouse/drop-shipments", "Drop shipments"),
];

/// The filter of the lists of ASNs and receipts.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    merchant: String,
    asn_number: String,
    after: String,
}

impl Filter {
    fn request(&self) -> [(&'static str, &str); 2] {
        [("after", &self.after), ("limit", PAGE)]
    }

    /// Lists of ASNs have no filter by number: the look-up finds one.
    fn lookup(&self) -> Option<HttpResponse> {
        let number = self.asn_number.trim();
        (!number.is_empty()).then(|| redirect(&lookup_url(&self.merchant, number)))
    }

    /// The filter as the query of a URL, without the page.
    fn query(&self) -> String {
        query_string(&[("merchant", &self.merchant), ("asn_number", &self.asn_number)])
    }

    fn is_empty(&self) -> bool {
        self.merchant.is_empty() && self.asn_number.is_empty() && self.after.is_empty()
    }
}

fn record_url(merchant: &str, kind: &str, number: &str) -> String {
    format!("/{}", path!("merchants", merchant, kind, number))
}

/// The newest messages of an ordering key.
async fn load_messages(
    signed_in: &SignedIn,
    merchant: &str,
    ordering_key: &str,
) -> Result<DeliveryList, ApiError> {
    let query = [("merchant", merchant), ("ordering_key", ordering_key), ("limit", "20")];
    load(signed_in, Service::WarehouseNotifier, None, "v1/deliveries", &query).await
}

fn entries(
    list: Result<DeliveryList, ApiError>,
    page: &Page,
) -> Result<Part<Vec<Entry>>, ApiError> {
    let entry = |delivery| Entry::new(page, Service::WarehouseNotifier, delivery);
    Part::new(list.map(|list| list.deliveries.into_iter().map(entry).collect()))
}

/// A record that the search of warehouse-notifier found.
#[derive(Debug, Deserialize)]
pub(crate) struct WarehouseRecord {
    pub(crate) merchant: Option<String>,
    kind: String,
    /// The number of an ASN, or the order of a drop shipment.
    pub(crate) number: String,
    pub(crate) created_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WarehouseRecords {
    pub(crate) records: Vec<WarehouseRecord>,
}

impl WarehouseRecord {
    /// The name of the kind, and the segment of the URL.
    pub(crate) fn place(&self) -> (&'static str, &'static str) {
        match self.kind.as_str() {
            "inbound_asn" => ("Inbound ASNs", "inbound-asns"),
            "outbound_shipment" => ("Outbound ASNs", "outbound-asns"),
            _ => ("Drop shipments", "drop-shipments"),
        }
    }

    pub(crate) fn url(&self, merchant: &str) -> String {
        record_url(merchant, self.place().1, &self.number)
    }
}

/// The records of a merchant with a number.
pub(crate) async fn find_records(
    signed_in: &SignedIn,
    merchant: &str,
    filter: &str,
    number: &str,
) -> Result<Vec<WarehouseRecord>, ApiError> {
    let query = [(filter, number), ("limit", "20")];
    let (service, path) = (Service::WarehouseNotifier, "v1/warehouse_records");
    let found: WarehouseRecords = load(signed_in, service, Some(merchant), path, &query).await?;
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
        [only] => Ok(redirect(&only.url(&merchant))),
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
        let record = |kind: &str| WarehouseRecord {
            merchant: None,
            kind: kind.into(),
            number: "A/1".into(),
            created_at: DateTime::default(),
        };
        assert_eq!(record("inbound_asn").url("acme"), "/merchants/acme/inbound-asns/A%2F1");
        assert_eq!(record("outbound_shipment").place().1, "outbound-asns");
    }

    #[test]
    fn a_page_of_a_list_keeps_the_filter() {
        let filter =
            Filter { merchant: "acme".into(), asn_number: "A&1".into(), after: "x".into() };
        assert_eq!(filter.query(), "merchant=acme&asn_number=A%261");
        assert!(!filter.is_empty());
    }
}
