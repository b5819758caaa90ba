//! Tables of returns: the columns and conditions that all of them have.

use domain::returns::{Rma, RmaUnit};
use pages::path;

use crate::{
    Page,
    filter::Condition,
    markup::{Markup, link, text},
    table::{Columns, Table},
};

/// The conditions of a list of returns.
pub(crate) const CONDITIONS: &[Condition] =
    &[Condition::MERCHANT, Condition::text("order_identifier", "Order")];

/// The URL of the page of a return.
pub(crate) fn return_url(rma: &Rma) -> String {
    format!("/{}", path!("merchants", rma.merchant.as_str(), "returns", rma.rma_identifier))
}

/// A table of returns, to which columns are added. `units` returns those that the table is about.
pub(crate) fn return_table<'a>(
    label: &str,
    returns: &'a [Rma],
    page: &Page,
    units: fn(&Rma) -> Vec<&RmaUnit>,
) -> Columns<'a, Rma> {
    Table::of(label, returns)
        .head("Return", |it| link(return_url(it), &it.rma_identifier))
        .cell_if(page.person.is_staff(), "Merchant", |it| text(&it.merchant))
        .wrapped("Order", |it| order_links(it.merchant.as_str(), &units(it)))
        .number("Units", |it| text(units(it).len()))
}

/// Links to the orders of units. Units of an order stand beside each other.
pub(super) fn order_links(merchant: &str, units: &[&RmaUnit]) -> Markup {
    let mut orders: Vec<_> = units.iter().map(|unit| unit.id.order_identifier.as_str()).collect();
    orders.dedup();
    let order =
        |order: &&str| link(format!("/{}", path!("merchants", merchant, "orders", order)), order);
    orders.iter().map(order).reduce(Markup::and).unwrap_or_default()
}
