//! Discrepancies of one merchant or, for staff, of all.

mod resolve;

use actix_web::{get, web};
use chrono::{DateTime, Utc};
use pages::{api::Service, form::Fields, path};
use serde::Deserialize;

use crate::{
    PageResult, Section, SignedIn,
    error::sentence,
    filter::{Condition, or_any},
    list::List,
    listing::words,
    markup::{Markup, link, or_dash, text},
    table::Table,
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_discrepancies).configure(resolve::routes);
}

const PATH: &str = "v1/discrepancies";

const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT,
    Condition::choice("state", "State", || {
        [("", "open"), ("resolved", "resolved"), ("any", "any")]
            .map(|(state, name)| (state, name.to_owned()))
            .into()
    })
    .not_sent(),
    Condition::choice("kind", "Kind", || or_any(KINDS.map(|kind| (kind, words(kind))))),
    Condition::text("order_identifier", "Order"),
    Condition::text("rma_identifier", "Return"),
];

static LIST: List = List {
    about: "Facts that contradict each other, for example a refund of a return that does not exist. They stop \
            nothing, but a person should check and resolve each of them.",
    has_chips: true,
    sorted_nouns: Some(("discrepancy", "discrepancies")),
    ..List::new(
        Section::Discrepancies,
        ("/discrepancies", "Discrepancies"),
        (Service::RmaEngine, PATH),
        CONDITIONS,
        [
            "No discrepancy is open. New ones appear here when order snapshots, refunds and receipts contradict \
             each other.",
            "No discrepancy matches this filter.",
        ],
    )
};

/// The kinds of discrepancy, for the filter.
const KINDS: [&str; 14] = [
    "amounts_changed",
    "exchange_order_identifier_taken",
    "order_amounts_changed",
    "received_damaged",
    "received_over",
    "received_short",
    "received_wrong",
    "refund_above_paid",
    "refund_exceeds_line",
    "refund_exceeds_return",
    "refund_names_other_return",
    "refund_of_canceled_return",
    "refund_of_unknown_return",
    "shipped_quantity_reduced",
];

/// A discrepancy as rma-engine describes it.
#[derive(Debug, Deserialize)]
pub(crate) struct Discrepancy {
    pub(crate) merchant: String,
    pub(crate) position: i64,
    pub(crate) at: DateTime<Utc>,
    pub(crate) message: String,
    pub(crate) detail: Detail,
    pub(crate) resolution: Option<Resolution>,
}

/// The identifiers of a discrepancy. Each kind has some of them.
#[derive(Debug, Deserialize)]
pub(crate) struct Detail {
    pub(crate) kind: String,
    order_identifier: Option<String>,
    pub(crate) rma_identifier: Option<String>,
    unit: Option<UnitOrder>,
}

#[derive(Debug, Deserialize)]
struct UnitOrder {
    order_identifier: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Resolution {
    pub(crate) at: DateTime<Utc>,
    pub(crate) by: String,
    pub(crate) note: String,
    pub(crate) rma_identifier: Option<String>,
}

impl Detail {
    fn order(&self) -> Option<&str> {
        let of_unit = || self.unit.as_ref().map(|unit| unit.order_identifier.as_str());
        self.order_identifier.as_deref().or_else(of_unit)
    }

    /// The return, unless the discrepancy is that it does not exist.
    fn existing_return(&self) -> Option<&str> {
        self.rma_identifier.as_deref().filter(|_| !self.is_assignable())
    }

    /// Only a refund that names an unknown return can be assigned to another one.
    fn is_assignable(&self) -> bool {
        self.kind == "refund_of_unknown_return"
    }
}

impl Discrepancy {
    pub(crate) fn url(&self) -> String {
        url(&self.merchant, self.position)
    }

    pub(crate) fn sentence(&self) -> String {
        sentence(&self.message)
    }

    fn kind(&self) -> String {
        words(&self.detail.kind)
    }

    /// A link to the order.
    fn order(&self) -> Option<Markup> {
        self.detail.order().map(|order| self.record("orders", order))
    }

    /// A link to the return.
    fn rma(&self) -> Option<Markup> {
        self.detail.existing_return().map(|rma| self.record("returns", rma))
    }

    fn record(&self, kind: &str, identifier: &str) -> Markup {
        link(format!("/{}", path!("merchants", self.merchant, kind, identifier)), identifier)
    }

    /// Whether there is something to decide. A refund can still be assigned after a note.
    fn can_be_resolved(&self) -> bool {
        match &self.resolution {
            None => true,
            Some(resolution) => self.detail.is_assignable() && resolution.rma_identifier.is_none(),
        }
    }
}

fn url(merchant: &str, position: i64) -> String {
    format!("/{}", path!("merchants", merchant, "discrepancies", position.to_string()))
}

/// The state as rma-engine names it. Open ones are shown first.
fn wanted_state(state: &str) -> &str {
    match state {
        "" => "open",
        "any" => "",
        state => state,
    }
}

#[get("/discrepancies")]
async fn list_discrepancies(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let state = wanted_state(query.text("state"));
    let (view, records) = LIST.load::<Discrepancy>(&signed_in, &query, &[("state", state)]).await?;
    let page = signed_in.page(LIST.section);
    let table = Table::of(LIST.title, &records)
        .head("Discrepancy", |it| link(it.url(), it.sentence()))
        .cell("Kind", |it| text(it.kind()))
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.merchant))
        .wrapped("Order", |it| or_dash(it.order()))
        .wrapped("Return", |it| or_dash(it.rma()))
        .cell("Since", |it| page.time(it.at))
        .cell("Resolved", |it| {
            let resolved = |by: &Resolution| page.time(by.at).and("by").and(text(&by.by));
            or_dash(it.resolution.as_ref().map(resolved))
        });
    let table = table.table();
    view.show(page, table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discrepancy_leads_to_its_order_and_return() {
        let detail = |text| serde_json::from_str::<Detail>(text).unwrap();
        let unknown = detail(
            r#"{"kind": "refund_of_unknown_return", "order_identifier": "A", "rma_identifier": "R"}"#,
        );
        assert_eq!((unknown.order(), unknown.existing_return()), (Some("A"), None));
        assert!(unknown.is_assignable());
        let damaged = detail(
            r#"{"kind": "received_damaged", "rma_identifier": "R", "unit": {"order_identifier": "A"}}"#,
        );
        assert_eq!((damaged.order(), damaged.existing_return()), (Some("A"), Some("R")));
    }

    #[test]
    fn open_ones_are_shown_first() {
        assert_eq!((wanted_state(""), wanted_state("any")), ("open", ""));
        assert_eq!(wanted_state("resolved"), "resolved");
    }
}
