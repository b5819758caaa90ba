//! A refund the merchant has paid: which units of which lines, and how much in all.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::line::{LineIndex, MAX_LINES, NamedLine, QUANTITY};
use super::{AMOUNT, IDENTIFIER, MAX_NOTE, MAX_TAGS, WORD, tags_schema};
use crate::json::{Object, array, integer, object, text, timestamp};

/// A refund with this tag does not touch returns.
pub const IGNORE_REFUND: &str = "ignore_refund";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refund {
    /// Unique across all refunds of the merchant. A refund never changes once it was seen.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub total_refund_amount_cents: i64,
    /// Only the lines and units that this refund covers.
    #[schema(max_items = 1000)]
    pub refund_line_items: Vec<RefundLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 5000)]
    pub note: Option<String>,
    pub created_at: DateTime<Utc>,
    /// Names the RMA when the order has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub rma_identifier: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, schema_with = tags_schema)]
    pub tags: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefundLine {
    /// Unique across all refunds.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    #[schema(minimum = 1, maximum = 1000)]
    pub quantity: i64,
    /// The identifier of a line of the same order.
    #[schema(min_length = 1, max_length = 255)]
    pub order_item_identifier: String,
}

/// What the refunds of one order have used up so far. One that returns take no notice of uses up
/// no units.
#[derive(Debug, Default)]
pub(super) struct RefundIndex {
    refunds: HashSet<String>,
    lines: HashSet<String>,
    /// Refunded units by order line.
    units: HashMap<String, i64>,
}

impl Refund {
    pub(super) fn read(
        refund: &Object<'_>,
        lines: &LineIndex,
        seen: &mut RefundIndex,
    ) -> Option<Self> {
        let identifier = refund.required("identifier", text(IDENTIFIER));
        let total = refund.required("total_refund_amount_cents", integer(AMOUNT));
        let tags = refund.optional("tags", array(0..=MAX_TAGS, text(WORD)));
        // While its tags cannot be read, nothing is held against the other refunds.
        let ignored = tags.as_ref().is_none_or(|tags| tags.as_deref().is_some_and(say_ignore));
        let line = object(|line| RefundLine::read(line, lines, ignored, seen));
        let items = refund.required("refund_line_items", array(0..=MAX_LINES, line));
        let note = refund.optional("note", text(0..=MAX_NOTE));
        let created_at = refund.required("created_at", timestamp);
        let rma_identifier = refund.optional("rma_identifier", text(WORD));

        if identifier.as_ref().is_some_and(|name| !seen.refunds.insert(name.clone())) {
            refund.invalid("identifier", "another refund of this order has the same identifier");
        }
        Some(Self {
            identifier: identifier?,
            total_refund_amount_cents: total?,
            refund_line_items: items?,
            note: note?,
            created_at: created_at?,
            rma_identifier: rma_identifier?.filter(|rma| !rma.is_empty()),
            tags: tags?.unwrap_or_default(),
        })
    }

    /// Whether returns take no notice of this refund.
    pub fn is_ignored(&self) -> bool {
        say_ignore(&self.tags)
    }
}

fn say_ignore(tags: &[String]) -> bool {
    tags.iter().any(|tag| tag == IGNORE_REFUND)
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

        if identifier.as_ref().is_some_and(|name| !seen.lines.insert(name.clone())) {
            line.invalid("identifier", "another refund line of this order has the same identifier");
        }
        if let Some(order_item) = &order_item {
            match lines.line(order_item) {
                NamedLine::Unknown => {
                    line.invalid("order_item_identifier", "names no line of this order");
                }
                NamedLine::Known { quantity: available } => {
                    let before = seen.units.get(order_item).filter(|_| !ignored);
                    let with_this = before.unwrap_or(&0) + quantity.unwrap_or(0);
                    if with_this > available {
                        let detail = format!("refunds more than the {available} units of the line");
                        line.invalid("quantity", detail);
                    } else if !ignored {
                        seen.units.insert(order_item.clone(), with_this);
                    }
                }
                NamedLine::Unclear => {}
            }
        }
        Some(Self {
            identifier: identifier?,
            quantity: quantity?,
            order_item_identifier: order_item?,
        })
    }
}
