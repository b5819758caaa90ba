//! Discrepancies of one merchant or, for staff, of all.

mod resolve;
mod row;

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::api::Service;
use serde::Deserialize;

use crate::{
    Page, PageResult, Section, SignedIn, html,
    listing::{Chip, Listed, ORDER, Order, PAGE, Sorted, chips, load, merchant_filter},
};

pub(crate) use row::DiscrepancyRow;

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_discrepancies).configure(resolve::routes);
}

const PATH: &str = "v1/discrepancies";

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

#[derive(Debug, Deserialize)]
pub(crate) struct DiscrepancyPage {
    pub(crate) discrepancies: Vec<Discrepancy>,
    next: Option<String>,
}

fn url(merchant: &str, position: i64) -> String {
    format!("/{}", pages::path!("merchants", merchant, "discrepancies", position.to_string()))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filter {
    merchant: String,
    kind: String,
    /// `open`, `resolved` or `any`. Open ones if it is empty.
    state: String,
    order_identifier: String,
    rma_identifier: String,
    /// `oldest`, or empty for the newest first.
    order: String,
    after: String,
}

impl Filter {
    /// The conditions, each with the list without it.
    fn chips(&self) -> Vec<Chip> {
        chips("/discrepancies", &self.fields())
    }

    /// The fields of the URL, without the page.
    fn fields(&self) -> [(&'static str, &str); 6] {
        let [kind, order, rma] = self.pairs();
        let (merchant, state) = (self.merchant.as_str(), self.state.as_str());
        let sort = (ORDER, Order::of(&self.order).value());
        [("merchant", merchant), ("state", state), kind, order, rma, sort]
    }

    fn pairs(&self) -> [(&'static str, &str); 3] {
        [
            ("kind", self.kind.as_str()),
            ("order_identifier", self.order_identifier.as_str()),
            ("rma_identifier", self.rma_identifier.as_str()),
        ]
    }

    /// The state as rma-engine names it.
    fn wanted_state(&self) -> &str {
        match self.state.as_str() {
            "" => "open",
            "any" => "",
            state => state,
        }
    }

    fn is_empty(&self) -> bool {
        self.chips().is_empty() && self.after.is_empty()
    }
}

#[derive(Template)]
#[template(path = "discrepancies.html")]
struct DiscrepanciesPage {
    page: Page,
    filter: Filter,
    list: Listed<Vec<DiscrepancyRow>>,
    sorted: Sorted,
}

#[get("/discrepancies")]
async fn list_discrepancies(signed_in: SignedIn, filter: web::Query<Filter>) -> PageResult {
    let filter = filter.into_inner();
    let merchant = merchant_filter(&signed_in, &filter.merchant)?;
    let page = signed_in.page(Section::Discrepancies);
    let [kind, order, rma] = filter.pairs();
    let state = ("state", filter.wanted_state());
    let sort = (ORDER, Order::of(&filter.order).value());
    let query = [kind, order, rma, state, sort, ("after", filter.after.as_str()), ("limit", PAGE)];
    let list =
        load::<DiscrepancyPage>(&signed_in, Service::RmaEngine, merchant, PATH, &query).await;
    let (next, shown) =
        list.as_ref().map_or((None, 0), |list| (list.next.as_deref(), list.discrepancies.len()));
    let sorted = Sorted::new("/discrepancies", &filter.fields(), &filter.after, next);
    let sorted = sorted.count(shown, "discrepancy", "discrepancies");
    let list = Listed::new(list)?.map(|list| list.rows(&page));
    html(&DiscrepanciesPage { page, filter, list, sorted })
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
        let state = |state: &str| Filter { state: state.into(), ..Filter::default() };
        assert_eq!((state("").wanted_state(), state("any").wanted_state()), ("open", ""));
        assert_eq!(state("resolved").wanted_state(), "resolved");
    }
}
