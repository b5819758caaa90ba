//! The units of an order with their returns and refunds, as rma-engine knows them.

use chrono::{DateTime, Utc};
use pages::{path, text::money};
use serde::Deserialize;

use crate::{
    Page,
    listing::words,
    markup::{Markup, badge, link, or_dash, text, text_or_dash},
    returns::status_tone,
    table::Table,
};

/// Large orders have thousands of units.
const MAX_SHOWN: usize = 300;

#[derive(Debug, Deserialize)]
pub(super) struct OrderView {
    currency: String,
    original_order_identifier: Option<String>,
    #[serde(default)]
    lines: Vec<Line>,
    #[serde(default)]
    refunds: Vec<Refund>,
    #[serde(default)]
    returns: Vec<Return>,
}

#[derive(Debug, Deserialize)]
struct Line {
    identifier: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    units: Vec<Unit>,
}

#[derive(Debug, Deserialize)]
struct Unit {
    unit: i32,
    paid_amount_cents: i64,
    rma_identifier: Option<String>,
    refund_identifier: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Refund {
    identifier: String,
    amount_cents: i64,
    rma_identifier: Option<String>,
    #[serde(default)]
    is_unmatched: bool,
}

#[derive(Debug, Deserialize)]
struct Return {
    rma_identifier: String,
    status: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

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
            unmatched: unmatched.map(|refund| refund.sentence(&view.currency)).collect(),
            returns: return_table(&view.returns, merchant, page),
            original_order: view.original_order_identifier,
        }
    }
}

fn return_link(merchant: &str, rma: &str) -> Markup {
    link(format!("/{}", path!("merchants", merchant, "returns", rma)), rma)
}

fn unit_table(units: &[(&Line, &Unit)], currency: &str, merchant: &str) -> Table {
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

fn return_table(returns: &[Return], merchant: &str, page: &Page) -> Table {
    Table::of("Returns of the order", returns)
        .head("Return", |it| return_link(merchant, &it.rma_identifier))
        .cell("State", |it| badge(status_tone(&it.status), words(&it.status)))
        .cell("Created", |it| page.time(it.created_at))
        .cell("Changed", |it| page.time(it.updated_at))
        .table()
}

impl Refund {
    fn sentence(&self, currency: &str) -> String {
        format!(
            "The refund {} of {} names the return {}, which does not exist.",
            self.identifier,
            money(self.amount_cents, currency),
            self.rma_identifier.as_deref().unwrap_or_default()
        )
    }
}
