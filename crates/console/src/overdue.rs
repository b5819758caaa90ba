//! Returns with exchanged units that did not come back, and the guarantees of a merchant by month.

use actix_web::{get, web};
use api::returns::{GuaranteeMonth, GuaranteeReport, GuaranteeSum};
use askama::Template;
use domain::returns::Rma;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    text::count,
};

use crate::{
    Page, PageResult, Section, SignedIn,
    filter::{Condition, Filter},
    html,
    list::List,
    markup::{button, link, text},
    record_list::{Listed, amount, load, merchant_filter, query_string},
    returns::{CONDITIONS, currency, due_units, return_table, return_url},
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

/// The amount of the units that are due.
fn due_cents(rma: &Rma) -> i64 {
    due_units(rma).map(|(_, guarantee)| guarantee.amount_cents).sum()
}

#[get("/overdue")]
async fn list_overdue(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let (view, returns) = LIST.load::<Rma>(&signed_in, &query, &[("overdue", "true")]).await?;
    let page = signed_in.page(LIST.section);
    let table = overdue_table(&returns, &page);
    view.show(page, table)
}

fn overdue_table(returns: &[Rma], page: &Page) -> Table {
    return_table(LIST.title, returns, page, |it| due_units(it).map(|(unit, _)| unit).collect())
        .classed("number nowrap", "Amount", |it| text(amount(due_cents(it), currency(it))))
        .cell("Due since", |it| {
            let since = due_units(it).filter_map(|(_, guarantee)| guarantee.unreturned_at).min();
            page.time_or(since, "–")
        })
        .cell_if(page.person.may_manage(), "Actions", |it| {
            let about = format!(" units of return {}", it.rma_identifier);
            button(format!("{}/waive", return_url(it)), "Waive …", about)
        })
        .table()
}

#[derive(Template)]
#[template(path = "guarantees.html")]
struct GuaranteesPage {
    page: Page,
    tabs: &'static [(&'static str, &'static str)],
    filter: Filter,
    /// Whether staff have chosen a merchant.
    has_merchant: bool,
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
    let due_url = due_url(merchant.as_deref());
    html(&GuaranteesPage {
        page,
        tabs: TABS,
        filter,
        has_merchant: merchant.is_some(),
        listed,
        table: month_table(&months, &due_url),
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

/// The list of the returns with units that are due.
fn due_url(merchant: Option<&str>) -> String {
    let query = query_string(&[("merchant", merchant.unwrap_or_default())]);
    format!("{}?{query}", LIST.path)
}

/// The sums of each month. The amounts that are due lead to a list.
fn month_table(months: &[GuaranteeMonth], due_url: &str) -> Table {
    let units = |sum: GuaranteeSum| text(count(sum.units, "unit", "units")).classed("small muted");
    let amount_of = |month: &GuaranteeMonth, sum: GuaranteeSum| {
        amount(sum.amount_cents, Some(month.currency.as_str()))
    };
    let sum =
        |month: &GuaranteeMonth, sum: GuaranteeSum| text(amount_of(month, sum)).below(units(sum));
    Table::of("Guarantees by month", months)
        .head("Month", |it| text(&it.month))
        .classed("number nowrap", "Open", |it| sum(it, it.open))
        .classed("number nowrap", "Met", |it| sum(it, it.met))
        .classed("number nowrap", "Due", |it| match it.due.units {
            0 => sum(it, it.due),
            _ => link(due_url, amount_of(it, it.due)).below(units(it.due)),
        })
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
        let rma = fixtures::rma("CREATED", &units);
        assert_eq!((due_units(&rma).count(), due_cents(&rma)), (2, 1000));
    }

    #[test]
    fn a_month_shows_units_and_amounts() {
        let mut month = GuaranteeMonth::new("2026-11".to_owned(), "EUR".to_owned());
        month.due = GuaranteeSum { units: 2, amount_cents: 4330 };
        let table = month_table(&[month], &due_url(Some("acme"))).to_string();
        assert!(table.contains(r#"href="/overdue?merchant=acme""#), "{table}");
        assert!(table.contains("43.30 EUR"), "{table}");
        assert!(table.contains("2 units"), "{table}");
    }
}
