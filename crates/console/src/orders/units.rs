//! The units of an order with their returns and refunds, as rma-engine knows them.

use api::returns::{LineView, OrderView, RefundView, ReturnSummary, UnitView};
use pages::{path, text::money};

use crate::{
    Page,
    markup::{Markup, link, or_dash, text, text_or_dash},
    states::Shown as _,
    table::Table,
};

/// Large orders have thousands of units.
const MAX_SHOWN: usize = 300;

pub(super) struct OrderUnits {
    pub(super) original_order: Option<String>,
    pub(super) units: Table,
    /// The number of units that are not shown.
    pub(super) hidden: usize,
    /// Refunds that name a return that does not exist, in sentences.
    pub(super) unmatched: Vec<String>,
    pub(super) returns: Table,
}

impl OrderUnits {
    pub(super) fn new(view: OrderView, merchant: &str, page: &Page) -> Self {
        let units: Vec<_> = view
            .lines
            .iter()
            .flat_map(|line| line.units.iter().map(move |unit| (line, unit)))
            .collect();
        let shown = units.get(..MAX_SHOWN).unwrap_or(&units);
        let unmatched = view.refunds.iter().filter(|refund| refund.is_unmatched);
        Self {
            units: unit_table(shown, &view.currency, merchant),
            hidden: units.len() - shown.len(),
            unmatched: unmatched.map(|refund| sentence(refund, &view.currency)).collect(),
            returns: return_table(&view.returns, merchant, page),
            original_order: view.original_order_identifier,
        }
    }
}

fn return_link(merchant: &str, rma: &str) -> Markup {
    link(format!("/{}", path!("merchants", merchant, "returns", rma)), rma)
}

fn unit_table(units: &[(&LineView, &UnitView)], currency: &str, merchant: &str) -> Table {
    Table::of("Shipped units of the order", units)
        .head("Unit", |(line, it)| text(format!("{}, unit {}", line.identifier, it.unit)))
        .cell("Product", |(line, _)| text(&line.title))
        .classed("number nowrap", "Paid", |(_, it)| text(money(it.paid_amount_cents, currency)))
        .cell("Return", |(_, it)| {
            or_dash(it.rma_identifier.as_ref().map(|rma| return_link(merchant, rma)))
        })
        .cell("Refund", |(_, it)| text_or_dash(it.refund_identifier.as_ref()))
        .table()
}

fn return_table(returns: &[ReturnSummary], merchant: &str, page: &Page) -> Table {
    Table::of("Returns of the order", returns)
        .head("Return", |it| return_link(merchant, &it.rma_identifier))
        .cell("State", |it| it.status.badge())
        .cell("Created", |it| page.time(it.created_at))
        .cell("Changed", |it| page.time(it.updated_at))
        .table()
}

fn sentence(refund: &RefundView, currency: &str) -> String {
    format!(
        "The refund {} of {} names the return {}, which does not exist.",
        refund.identifier,
        money(refund.amount_cents, currency),
        refund.rma_identifier.as_deref().unwrap_or_default()
    )
}
