//! Returns with exchanged units that did not come back, and the guarantees of a merchant by month.

use actix_web::{get, web};
use api::returns::{GuaranteeMonth, GuaranteeReport, GuaranteeSum};
use askama::Template;
use domain::returns::{GuaranteeState, Rma};
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
    text::count,
};

use crate::{
    Page, PageResult, Section, SignedIn,
    filter::{Condition, Filter},
    html,
    list::List,
    listing::{Listed, amount, load, merchant_filter},
    markup::{Markup, link, or_dash, text},
    returns::units_with,
    table::Table,
};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_overdue).service(show_guarantees);
}

/// URL and name of the pages.
const TABS: &[(&str, &str)] = &[("/overdue", "Not returned"), ("/overdue/months", "By month")];

static LIST: List = List {
    about: "Exchanged units that did not come back in time. The merchant shipped the exchange and can charge \
            for them. A scan or a receipt takes a return off this list.",
    heading: "Overdue exchanges",
    tabs: TABS,
    sorted_nouns: Some(("return", "returns")),
    ..List::new(
        Section::Overdue,
        ("/overdue", "Overdue exchanges"),
        (Service::RmaEngine, "v1/returns"),
        CONDITIONS,
        ["No exchanged unit is overdue.", "No overdue return matches this filter."],
    )
};

const CONDITIONS: &[Condition] =
    &[Condition::MERCHANT, Condition::text("order_identifier", "Order")];

/// The units that are due and their amount.
fn due(rma: &Rma) -> (usize, i64) {
    let due: Vec<_> = units_with(rma, GuaranteeState::Due).collect();
    (due.len(), due.iter().map(|guarantee| guarantee.amount_cents).sum())
}

#[get("/overdue")]
async fn list_overdue(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let (view, returns) = LIST.load::<Rma>(&signed_in, &query, &[("overdue", "true")]).await?;
    let page = signed_in.page(LIST.section);
    let table = Table::of(LIST.title, &returns)
        .head("Return", |it| {
            let path = path!("merchants", it.merchant.as_str(), "returns", it.rma_identifier);
            link(format!("/{path}"), &it.rma_identifier)
        })
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.merchant))
        .number("Units", |it| text(due(it).0))
        .classed("number nowrap", "Amount", |it| {
            let currency = Some(it.currency.as_str()).filter(|currency| !currency.is_empty());
            text(amount(due(it).1, currency))
        })
        .cell("Due since", |it| {
            let due = units_with(it, GuaranteeState::Due);
            or_dash(
                due.filter_map(|guarantee| guarantee.unreturned_at).min().map(|at| page.time(at)),
            )
        })
        .cell("Requested", |it| page.time(it.created_at));
    let table = table.table();
    view.show(page, table)
}

#[derive(Template)]
#[template(path = "guarantees.html")]
struct GuaranteesPage {
    page: Page,
    tabs: &'static [(&'static str, &'static str)],
    filter: Filter,
    /// The merchant of the report; `None` until staff have chosen one.
    merchant: Option<String>,
    listed: Listed<()>,
    table: Table,
}

const MONTHS: &str = "/overdue/months";
const OF_MERCHANT: &[Condition] = &[Condition::MERCHANT];

#[get("/overdue/months")]
async fn show_guarantees(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let filter = Filter::read(&signed_in, MONTHS, OF_MERCHANT, &query);
    let merchant = merchant_filter(&signed_in, filter.value("merchant"))?.map(str::to_owned);
    let listed = match &merchant {
        None => Listed::Loaded(Vec::new()),
        Some(merchant) => Listed::new(load_months(&signed_in, merchant).await)?,
    };
    let (listed, months) = match listed {
        Listed::Loaded(months) => (Listed::Loaded(()), months),
        Listed::Invalid(reason) => (Listed::Invalid(reason), Vec::new()),
        Listed::Missing(service) => (Listed::Missing(service), Vec::new()),
    };
    let page = signed_in.page(Section::Overdue);
    html(&GuaranteesPage {
        page,
        tabs: TABS,
        filter,
        merchant,
        listed,
        table: month_table(&months),
    })
}

async fn load_months(
    signed_in: &SignedIn,
    merchant: &str,
) -> Result<Vec<GuaranteeMonth>, ApiError> {
    let report: GuaranteeReport =
        load(signed_in, Service::RmaEngine, Some(merchant), "v1/guarantees", &[]).await?;
    Ok(report.months)
}

fn month_table(months: &[GuaranteeMonth]) -> Table {
    let sum = |month: &GuaranteeMonth, sum: GuaranteeSum| -> Markup {
        let units = text(count(sum.units, "unit", "units")).classed("small muted");
        text(amount(sum.amount_cents, Some(month.currency.as_str()))).below(units)
    };
    Table::of("Guarantees by month", months)
        .head("Month", |it| text(&it.month))
        .classed("number nowrap", "Open", |it| sum(it, it.open))
        .classed("number nowrap", "Met", |it| sum(it, it.met))
        .classed("number nowrap", "Due", |it| sum(it, it.due))
        .classed("number nowrap", "Waived", |it| sum(it, it.waived))
        .table()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    #[test]
    fn only_units_that_are_due_count() {
        let unit = |state: &str| json!({ "guarantee": { "state": state, "started_at": "2026-11-16T08:00:00Z", "amount_cents": 500 } });
        let units = [unit("due"), unit("due"), unit("met"), json!({})];
        assert_eq!(due(&fixtures::rma("CREATED", &units)), (2, 1000));
    }

    #[test]
    fn a_month_shows_units_and_amounts() {
        let mut month = GuaranteeMonth::new("2026-11".to_owned(), "EUR".to_owned());
        month.due = GuaranteeSum { units: 2, amount_cents: 4330 };
        let table = month_table(&[month]).to_string();
        assert!(table.contains("43.30 EUR"), "{table}");
        assert!(table.contains("2 units"), "{table}");
    }
}
