//! Reads refunds, and checks them against the lines of their order and against each other.

use std::collections::{HashMap, HashSet};

use super::limits::{AMOUNT, IDENTIFIER, MAX_LINES, MAX_NOTE, MAX_TAGS, OPTIONAL_TEXT, QUANTITY};
use super::line_index::{LineIndex, LineLookup, LineUnits};
use super::refund::{Refund, RefundLine, has_ignore_tag};
use super::refunded_amounts::RefundedAmounts;
use super::sums::SumChecks;
use crate::json::{Object, array, integer, object, text, timestamp};

/// The refunds, refund lines and refunded units of one order so far. Ignored refunds refund no units.
#[derive(Debug, Default)]
pub(super) struct RefundIndex {
    refunds: HashSet<String>,
    lines: HashSet<String>,
    /// Refunded units by order line.
    units_by_line: HashMap<String, i64>,
    amounts: RefundedAmounts,
}

impl RefundIndex {
    pub(super) fn new(amounts: RefundedAmounts) -> Self {
        Self { amounts, ..Self::default() }
    }
}

impl Refund {
    pub(super) fn read(
        refund: &Object<'_>,
        lines: &LineIndex,
        seen: &mut RefundIndex,
        sums: &mut SumChecks,
    ) -> Option<Self> {
        let identifier = refund.required("identifier", text(IDENTIFIER));
        let total = refund.required("total_refund_amount_cents", integer(AMOUNT));
        let tags = refund.optional("tags", array(0..=MAX_TAGS, text(OPTIONAL_TEXT)));
        // A refund with invalid tags may be ignored, so its units cause no errors in other refunds.
        let ignored = tags.as_ref().is_none_or(|tags| tags.as_deref().is_some_and(has_ignore_tag));
        let line = object(|line| RefundLine::read(line, lines, ignored, seen));
        let items = refund.required("refund_line_items", array(0..=MAX_LINES, line));
        let note = refund.optional("note", text(0..=MAX_NOTE));
        let created_at = refund.required("created_at", timestamp);
        let rma_identifier = refund.optional("rma_identifier", text(OPTIONAL_TEXT));

        if identifier.as_ref().is_some_and(|identifier| !seen.refunds.insert(identifier.clone())) {
            refund.invalid("identifier", "another refund of this order has the same identifier");
        }
        let read = Self {
            identifier: identifier?,
            total_refund_amount_cents: total?,
            refund_line_items: items?,
            note: note?,
            created_at: created_at?,
            rma_identifier: rma_identifier?.filter(|rma| !rma.is_empty()),
            tags: tags?.unwrap_or_default(),
        };
        if let Some(detail) = seen.amounts.add(&read, lines) {
            sums.report(refund, "total_refund_amount_cents", detail);
        }
        Some(read)
    }
}

impl RefundLine {
    fn read(
        line: &Object<'_>,
        lines: &LineIndex,
        ignored: bool,
        seen: &mut RefundIndex,
    ) -> Option<Self> {
        let identifier = line.required("identifier", text(IDENTIFIER));
        let quantity = line.required("quantity", integer(QUANTITY));
        let order_item = line.required("order_item_identifier", text(IDENTIFIER));

        if identifier.as_ref().is_some_and(|identifier| !seen.lines.insert(identifier.clone())) {
            line.invalid("identifier", "another refund line of this order has the same identifier");
        }
        if let Some(order_item) = &order_item {
            match lines.find(order_item) {
                LineLookup::Unknown => {
                    line.invalid("order_item_identifier", "names no line of this order");
                }
                LineLookup::Known(LineUnits { quantity: available, .. }) => {
                    let before = seen.units_by_line.get(order_item).filter(|_| !ignored);
                    let refunded = before.unwrap_or(&0) + quantity.unwrap_or(0);
                    if refunded > available {
                        let detail = format!("refunds more than the {available} units of the line");
                        line.invalid("quantity", detail);
                    } else if !ignored {
                        seen.units_by_line.insert(order_item.clone(), refunded);
                    }
                }
                LineLookup::Invalid => {}
            }
        }
        Some(Self {
            identifier: identifier?,
            quantity: quantity?,
            order_item_identifier: order_item?,
        })
    }
}
