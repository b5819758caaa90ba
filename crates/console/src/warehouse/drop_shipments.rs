//! Drop shipments: confirmations and cancellations of orders that a warehouse ships for a merchant.

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join;
use pages::{
    api::{Part, Service},
    text::Moment,
};
use serde::Deserialize;

use super::{TABS, entries, load_messages, record_url};
use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    deliveries::Entry,
    html,
    listing::{Listed, PAGE, load, merchant_filter, query_string, words},
};

const PATH: &str = "v1/drop_shipments";

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_drop_shipments).service(show_drop_shipment);
}

/// A confirmation or cancellation as warehouse-notifier describes it.
#[derive(Debug, Deserialize)]
struct DropShipment {
    merchant: String,
    kind: String,
    order: String,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Deserialize)]
struct DropShipmentList {
    drop_shipments: Vec<DropShipment>,
    next: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    merchant: String,
    order: String,
    after: String,
}

impl Filter {
    /// The filter as the query of a URL, without the page.
    fn query(&self) -> String {
        query_string(&[("merchant", &self.merchant), ("order", &self.order)])
    }

    fn is_empty(&self) -> bool {
        self.merchant.is_empty() && self.order.is_empty() && self.after.is_empty()
    }
}

/// A confirmation or cancellation on a page.
struct DropShipmentRow {
    order: String,
    url: String,
    merchant: String,
    report: String,
    tone: &'static str,
    created: Moment,
}

impl DropShipmentList {
    fn rows(self, page: &Page) -> Vec<DropShipmentRow> {
        self.drop_shipments.into_iter().map(|it| DropShipmentRow::new(it, page)).collect()
    }
}

impl DropShipmentRow {
    fn new(shipment: DropShipment, page: &Page) -> Self {
        Self {
            url: record_url(&shipment.merchant, "drop-shipments", &shipment.order),
            report: words(&shipment.kind),
            tone: if shipment.kind == "confirmation" { "good" } else { "warn" },
            created: page.moment(shipment.created_at),
            order: shipment.order,
            merchant: shipment.merchant,
        }
    }
}

#[derive(Template)]
#[template(path = "warehouse_drop_shipments.html")]
struct DropShipmentsPage {
    page: Page,
    tab: &'static str,
    filter: Filter,
    list: Listed<Vec<DropShipmentRow>>,
    next: Option<String>,
}

#[get("/warehouse/drop-shipments")]
async fn list_drop_shipments(signed_in: SignedIn, filter: web::Query<Filter>) -> PageResult {
    let filter = filter.into_inner();
    let within = merchant_filter(&signed_in, &filter.merchant)?;
    let page = signed_in.page(Section::Warehouse);
    let (order, mut next) = (filter.order.trim(), None);
    let list = if within.is_none() && !order.is_empty() {
        Listed::Invalid("name the merchant of the order, too".to_owned())
    } else {
        let after = filter.after.as_str();
        let query = [("order_identifier", order), ("after", after), ("limit", PAGE)];
        let service = Service::WarehouseNotifier;
        let list: Result<DropShipmentList, _> =
            load(&signed_in, service, within, PATH, &query).await;
        next = list.as_ref().ok().and_then(|list| list.next.clone());
        Listed::new(list)?.map(|list| list.rows(&page))
    };
    html(&DropShipmentsPage { page, tab: "/warehouse/drop-shipments", filter, list, next })
}

#[derive(Template)]
#[template(path = "warehouse_drop_shipment.html")]
struct DropShipmentPage {
    page: Page,
    merchant: String,
    order: String,
    rows: Vec<DropShipmentRow>,
    messages: Part<Vec<Entry>>,
}

/// The reports about one order.
#[get("/merchants/{merchant}/drop-shipments/{order}")]
async fn show_drop_shipment(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, order) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let (query, key) = ([("order_identifier", order.as_str())], format!("order:{order}"));
    let (list, messages) = join(
        load::<DropShipmentList>(&signed_in, Service::WarehouseNotifier, Some(own), PATH, &query),
        load_messages(&signed_in, own, &key),
    )
    .await;
    let page = signed_in.page(Section::Warehouse);
    let rows = list?.rows(&page);
    if rows.is_empty() {
        return Err(PageError::NotFound);
    }
    let messages = entries(messages, &page)?;
    html(&DropShipmentPage { page, merchant, order, rows, messages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_list_keeps_the_filter() {
        let filter = Filter { order: "A&1".into(), ..Filter::default() };
        assert_eq!(filter.query(), "order=A%261");
        assert!(!filter.is_empty());
    }
}
