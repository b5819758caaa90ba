//! The units of an order with their returns and refunds, as rma-engine knows them.

use chrono::{DateTime, Utc};
use pages::text::{Moment, money};
use serde::Deserialize;

use crate::{
    Page,
    returns::{status_tone, status_words},
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
    pub(super) units: Vec<UnitRow>,
    /// The number of units that are not shown.
    pub(super) hidden: usize,
    pub(super) unmatched: Vec<UnmatchedRefund>,
    pub(super) returns: Vec<ReturnRow>,
}

pub(super) struct UnitRow {
    pub(super) line: String,
    pub(super) title: String,
    pub(super) unit: i32,
    pub(super) paid: String,
    pub(super) rma_identifier: Option<String>,
    pub(super) refund_identifier: Option<String>,
}

/// A refund that names a return that does not exist.
pub(super) struct UnmatchedRefund {
    pub(super) identifier: String,
    pub(super) amount: String,
    pub(super) rma_identifier: String,
}

pub(super) struct ReturnRow {
    pub(super) rma_identifier: String,
    pub(super) status: String,
    pub(super) tone: &'static str,
    pub(super) created: Moment,
    pub(super) updated: Moment,
}

impl OrderUnits {
    pub(super) fn new(view: OrderView, page: &Page) -> Self {
        let OrderView { currency, original_order_identifier, lines, refunds, returns } = view;
        let mut units: Vec<_> = lines.into_iter().flat_map(|line| line.rows(&currency)).collect();
        let hidden = units.len().saturating_sub(MAX_SHOWN);
        units.truncate(MAX_SHOWN);
        let unmatched = refunds.into_iter().filter(|refund| refund.is_unmatched);
        Self {
            original_order: original_order_identifier,
            units,
            hidden,
            unmatched: unmatched.map(|refund| refund.row(&currency)).collect(),
            returns: returns.into_iter().map(|it| it.row(page)).collect(),
        }
    }
}

impl Line {
    fn rows(self, currency: &str) -> Vec<UnitRow> {
        let Self { identifier, title, units } = self;
        let row = |unit: Unit| UnitRow {
            line: identifier.clone(),
            title: title.clone(),
            unit: unit.unit,
            paid: money(unit.paid_amount_cents, currency),
            rma_identifier: unit.rma_identifier,
            refund_identifier: unit.refund_identifier,
        };
        units.into_iter().map(row).collect()
    }
}

impl Refund {
    fn row(self, currency: &str) -> UnmatchedRefund {
        UnmatchedRefund {
            amount: money(self.amount_cents, currency),
            identifier: self.identifier,
            rma_identifier: self.rma_identifier.unwrap_or_default(),
        }
    }
}

impl Return {
    fn row(self, page: &Page) -> ReturnRow {
        ReturnRow {
            tone: status_tone(&self.status),
            status: status_words(&self.status),
            created: page.moment(self.created_at),
            updated: page.moment(self.updated_at),
            rma_identifier: self.rma_identifier,
        }
    }
}
