//! Receipts: units that arrived in a warehouse.

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{api::Service, text::Moment};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Filter, TABS, lookup_url, record_url};
use crate::{
    Page, PageResult, Section, SignedIn, html,
    listing::{Identifier, Listed, indented, load, merchant_filter},
};

pub(super) const PATH: &str = "v1/receipts";

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_receipts);
}

#[derive(Debug, Deserialize)]
struct Receipt {
    merchant: Option<String>,
    received_at: DateTime<Utc>,
    message: Box<RawValue>,
}

/// The message to the merchant, as far as the page shows it.
#[derive(Debug, Default, Deserialize)]
struct Message {
    asn_number: Option<Identifier>,
    line_identifier: Option<Identifier>,
    unit_identifier: Option<Identifier>,
    sku: Option<String>,
    upc: Option<Identifier>,
    initial_condition: Option<String>,
    reject_reason: Option<String>,
    reference: Option<Reference>,
}

/// The order or return that units belong to.
#[derive(Debug, Deserialize)]
pub(super) struct Reference {
    #[serde(rename = "type", default)]
    pub(super) kind: String,
    pub(super) identifier: Identifier,
}

impl Reference {
    /// The look-up of a return. Merchants also issue RMAs themselves, so there may be none.
    pub(super) fn url(&self, merchant: &str) -> Option<String> {
        (self.kind == "RMA").then(|| lookup_url(merchant, &self.identifier.to_string()))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct ReceiptList {
    receipts: Vec<Receipt>,
    next: Option<String>,
}

pub(super) struct ReceiptRow {
    pub(super) merchant: String,
    pub(super) asn: String,
    pub(super) asn_url: String,
    pub(super) line: String,
    pub(super) unit: String,
    pub(super) product: String,
    pub(super) result: &'static str,
    pub(super) tone: &'static str,
    /// The condition, or the reason of a rejection.
    pub(super) remark: String,
    pub(super) reference: Option<Reference>,
    pub(super) received: Moment,
    pub(super) message: String,
}

impl ReceiptList {
    pub(super) fn rows(self, within: Option<&str>, page: &Page) -> Vec<ReceiptRow> {
        self.receipts.into_iter().map(|receipt| receipt.row(within, page)).collect()
    }
}

impl Receipt {
    fn row(self, within: Option<&str>, page: &Page) -> ReceiptRow {
        let merchant = self.merchant.as_deref().or(within).unwrap_or_default().to_owned();
        let message: Message = serde_json::from_str(self.message.get()).unwrap_or_default();
        let text = |identifier: &Option<Identifier>| {
            identifier.as_ref().map(Identifier::to_string).unwrap_or_default()
        };
        let (asn, (tone, result, remark)) = (text(&message.asn_number), message.result());
        ReceiptRow {
            asn_url: record_url(&merchant, "inbound-asns", &asn),
            asn,
            line: text(&message.line_identifier),
            unit: text(&message.unit_identifier),
            product: message.sku.clone().unwrap_or_else(|| text(&message.upc)),
            tone,
            result,
            remark,
            reference: message.reference,
            received: page.moment(self.received_at),
            message: indented(self.message.get()),
            merchant,
        }
    }
}

impl Message {
    /// Tone, result and remark.
    fn result(&self) -> (&'static str, &'static str, String) {
        match (&self.reject_reason, &self.initial_condition) {
            (Some(reason), _) => ("bad", "rejected", reason.clone()),
            (None, Some(condition)) => ("good", "received", format!("condition {condition}")),
            (None, None) => ("good", "received", String::new()),
        }
    }
}

#[derive(Template)]
#[template(path = "warehouse_receipts.html")]
struct ReceiptsPage {
    page: Page,
    tab: &'static str,
    filter: Filter,
    list: Listed<Vec<ReceiptRow>>,
    next: Option<String>,
}

#[get("/warehouse/receipts")]
async fn list_receipts(signed_in: SignedIn, filter: web::Query<Filter>) -> PageResult {
    let filter = filter.into_inner();
    let within = merchant_filter(&signed_in, &filter.merchant)?;
    let page = signed_in.page(Section::Warehouse);
    let (asn_number, mut next) = (filter.asn_number.trim(), None);
    let list = if within.is_none() && !asn_number.is_empty() {
        Listed::Invalid("name the merchant of the ASN, too".to_owned())
    } else {
        let [after, limit] = filter.request();
        let query = [("asn_number", asn_number), after, limit];
        let list: Result<ReceiptList, _> =
            load(&signed_in, Service::WarehouseNotifier, within, PATH, &query).await;
        next = list.as_ref().ok().and_then(|list| list.next.clone());
        Listed::new(list)?.map(|list| list.rows(within, &page))
    };
    html(&ReceiptsPage { page, tab: "/warehouse/receipts", filter, list, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_unit_says_why() {
        let result = |text| serde_json::from_str::<Message>(text).unwrap().result();
        let rejected = result(r#"{"reject_reason": "wrong item"}"#);
        assert_eq!(rejected, ("bad", "rejected", "wrong item".to_owned()));
        let received = result(r#"{"initial_condition": "A", "asn_number": 7}"#);
        assert_eq!(received, ("good", "received", "condition A".to_owned()));
    }

    #[test]
    fn only_a_return_is_a_link() {
        let reference = |kind: &str| Reference {
            kind: kind.into(),
            identifier: Identifier::Text("RMA-1".into()),
        };
        assert_eq!(reference("RMA").url("acme").as_deref(), Some("/lookup?merchant=acme&q=RMA-1"));
        assert_eq!(reference("RA").url("acme"), None);
    }
}
