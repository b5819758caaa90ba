//! Receipts: units that arrived in a warehouse.

use actix_web::{get, web};
use chrono::{DateTime, Utc};
use pages::form::Fields;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{list, lookup_url, record_url};
use crate::{
    Page, PageResult, SignedIn,
    filter::Condition,
    list::List,
    listing::{Identifier, indented},
    markup::{Markup, badge, details, link, or_dash, text},
    table::Table,
};

pub(super) const PATH: &str = "v1/receipts";

const CONDITIONS: &[Condition] =
    &[Condition::MERCHANT, Condition::text("asn_number", "ASN number")];

static LIST: List = List {
    within_merchant: Some(("asn_number", "name the merchant of the ASN, too")),
    ..list(
        ("/warehouse/receipts", "Receipts"),
        PATH,
        CONDITIONS,
        [
            "There is no receipt yet. A warehouse reports each unit that it receives against an inbound ASN.",
            "No receipt matches this filter.",
        ],
    )
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_receipts);
}

#[derive(Debug, Deserialize)]
pub(super) struct Receipt {
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
    /// The kind and the identifier. A return has a link to the look-up, because merchants also issue RMAs themselves.
    pub(super) fn markup(&self, merchant: &str) -> Markup {
        let identifier = match self.kind.as_str() {
            "RMA" => link(lookup_url(merchant, &self.identifier.to_string()), &self.identifier),
            _ => text(&self.identifier),
        };
        text(&self.kind).and(identifier)
    }
}

impl Message {
    /// The result, with the condition or the reason of a rejection.
    fn result(&self) -> Markup {
        match (&self.reject_reason, &self.initial_condition) {
            (Some(reason), _) => badge("bad", "rejected").and(text(reason)),
            (None, Some(condition)) => {
                badge("good", "received").and(text(format!("condition {condition}")))
            }
            (None, None) => badge("good", "received"),
        }
    }
}

/// The receipts of a list or of an ASN. Within one merchant, their own field may be missing.
pub(super) fn receipt_table(
    receipts: &[Receipt],
    within: Option<&str>,
    has_merchant: bool,
    page: &Page,
) -> Table {
    let read = |receipt| {
        let Receipt { merchant, received_at, message: json }: &Receipt = receipt;
        let message: Message = serde_json::from_str(json.get()).unwrap_or_default();
        (merchant.as_deref().or(within).unwrap_or_default(), *received_at, message, json)
    };
    let rows: Vec<_> = receipts.iter().map(read).collect();
    let shown = |identifier: &Option<Identifier>| {
        identifier.as_ref().map(Identifier::to_string).unwrap_or_default()
    };
    Table::of("Receipts", &rows)
        .wrapped_head("Unit", |(_, _, it, _)| text(shown(&it.unit_identifier)))
        .cell("Result", |(_, at, it, _)| it.result().below(page.time(*at).classed("small muted")))
        .cell("ASN", |(merchant, _, it, _)| {
            let asn = shown(&it.asn_number);
            let line = format!(", line {}", shown(&it.line_identifier));
            link(record_url(merchant, "inbound-asns", &asn), &asn).with(text(line))
        })
        .cell_if(has_merchant, "Merchant", |(merchant, ..)| text(merchant))
        .cell("Product", |(_, _, it, _)| text(it.sku.clone().unwrap_or_else(|| shown(&it.upc))))
        .cell("Reference", |(merchant, _, it, _)| {
            or_dash(it.reference.as_ref().map(|reference| reference.markup(merchant)))
        })
        .cell("Message", |(.., json)| details("Show", indented(json.get())))
        .table()
}

#[get("/warehouse/receipts")]
async fn list_receipts(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let (view, receipts) = LIST.load::<Receipt>(&signed_in, &query, &[]).await?;
    let page = signed_in.page(LIST.section);
    let is_staff = page.person.is_staff();
    let table = receipt_table(&receipts, view.within.as_deref(), is_staff, &page);
    view.show(page, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rejected_unit_says_why() {
        let result = |json| serde_json::from_str::<Message>(json).unwrap().result().to_string();
        let rejected = result(r#"{"reject_reason": "wrong item"}"#);
        assert_eq!(rejected, "<span class=\"badge bad\">rejected</span> wrong item");
        let received = result(r#"{"initial_condition": "A", "asn_number": 7}"#);
        assert_eq!(received, "<span class=\"badge good\">received</span> condition A");
    }

    #[test]
    fn only_a_return_is_a_link() {
        let reference = |kind: &str| Reference {
            kind: kind.into(),
            identifier: Identifier::Text("RMA-1".into()),
        };
        let link = "RMA <a href=\"/lookup?merchant=acme&#38;q=RMA-1\">RMA-1</a>";
        assert_eq!(reference("RMA").markup("acme").to_string(), link);
        assert_eq!(reference("RA").markup("acme").to_string(), "RA RMA-1");
    }
}
