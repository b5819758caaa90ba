//! Receipts: units that arrived in a warehouse.

use actix_web::{get, web};
use api::warehouse::ReceiptDetails;
use domain::warehouse::{Identifier, InventoryReceipt, Reference, ReferenceType};
use pages::form::Fields;

use super::{list, lookup_url, record_url};
use crate::{
    Page, PageResult, SignedIn,
    filter::Condition,
    list::List,
    markup::{Markup, badge, details, link, or_dash, text},
    record_list::indented,
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

pub(super) fn reference_markup(reference: &Reference, merchant: &str) -> Markup {
    let identifier = match reference.kind {
        ReferenceType::Rma => {
            let url = lookup_url(merchant, &reference.identifier.to_string());
            link(url, &reference.identifier)
        }
        _ => text(&reference.identifier),
    };
    text(reference.kind).and(identifier)
}

fn result(receipt: &InventoryReceipt) -> Markup {
    match (&receipt.reject_reason, receipt.initial_condition) {
        (Some(reason), _) => badge("bad", "rejected").and(text(reason)),
        (None, Some(condition)) => {
            badge("good", "received").and(text(format!("condition {}", condition.as_str())))
        }
        (None, None) => badge("good", "received"),
    }
}

pub(super) fn receipt_table(receipts: &[ReceiptDetails], has_merchant: bool, page: &Page) -> Table {
    let shown = |identifier: &Option<Identifier>| {
        identifier.as_ref().map(Identifier::to_string).unwrap_or_default()
    };
    Table::of("Receipts", receipts)
        .wrapped_head("Unit", |it| text(shown(&it.message.unit_identifier)))
        .cell("Result", |it| {
            result(&it.message).below(page.time(it.received_at).classed("small muted"))
        })
        .cell("ASN", |it| {
            let asn = it.message.asn_number.to_string();
            let line = format!(", line {}", it.message.line_identifier);
            link(record_url(&it.merchant, "inbound-asns", &asn), &asn).with(text(line))
        })
        .cell_if(has_merchant, "Merchant", |it| text(&it.merchant))
        .cell("Product", |it| {
            text(it.message.sku.clone().unwrap_or_else(|| shown(&it.message.upc)))
        })
        .cell("Reference", |it| {
            let reference = it.message.reference.as_ref();
            or_dash(reference.map(|reference| reference_markup(reference, &it.merchant)))
        })
        .cell("Message", |it| {
            let json = serde_json::to_string(&it.message).unwrap_or_default();
            details("Show", indented(&json))
        })
        .table()
}

#[get("/warehouse/receipts")]
async fn list_receipts(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let (view, receipts) = LIST.load::<ReceiptDetails>(&signed_in, &query, &[]).await?;
    let page = signed_in.page(LIST.section);
    let is_staff = page.person.is_staff();
    let table = receipt_table(&receipts, is_staff, &page);
    view.show(page, table)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_rejected_unit_says_why() {
        let shown = |fields: Value| {
            let mut receipt = json!({ "asn_number": 7, "line_identifier": 1 });
            receipt.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            result(&serde_json::from_value(receipt).unwrap()).to_string()
        };
        let rejected = shown(json!({ "reject_reason": "wrong item" }));
        assert_eq!(rejected, "<span class=\"badge bad\">rejected</span> wrong item");
        let received = shown(json!({ "initial_condition": "A" }));
        assert_eq!(received, "<span class=\"badge good\">received</span> condition A");
    }

    #[test]
    fn only_a_return_is_a_link() {
        let markup = |kind| {
            let identifier = Identifier::from("RMA-1");
            let reference = Reference { kind, identifier, alternate_identifier: None };
            reference_markup(&reference, "acme").to_string()
        };
        let link = "RMA <a href=\"/lookup?merchant=acme&#38;q=RMA-1\">RMA-1</a>";
        assert_eq!(markup(ReferenceType::Rma), link);
        assert_eq!(markup(ReferenceType::Ra), "RA RMA-1");
    }
}
