//! A line of an order: so many units of one product, of which some shipped and some never will.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::message::Sums;
use super::{AMOUNT, IDENTIFIER, MAX_TAGS, WORD, tags_schema};
use crate::json::{JsonValue, Object, array, integer, number, object, text, timestamp};

/// An order has at most this many lines.
pub const MAX_LINES: usize = 1_000;
/// All lines of an order have at most this many units together: each of them is kept by itself.
pub const MAX_ORDER_UNITS: i64 = 10_000;
/// The units of one line.
pub(super) const QUANTITY: RangeInclusive<i64> = 1..=1_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderLine {
    /// Unique in its order; an RMA names it as `order_line_item_identifier`.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    /// Every line has a SKU or a UPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    /// At least the shipped and the canceled units together.
    #[schema(minimum = 1, maximum = 1000)]
    pub quantity: i64,
    #[schema(minimum = 0, maximum = 1000)]
    pub quantity_shipped: i64,
    #[schema(minimum = 0, maximum = 1000)]
    pub quantity_canceled: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub tracking_number: Option<String>,
    /// When the line shipped; a return window may start here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped_date: Option<DateTime<Utc>>,
    /// The merchant's own product id; defaults to the SKU, and that to the UPC.
    #[schema(required = false, nullable, max_length = 255)]
    pub product_identifier: String,
    /// Finds the SKUs that can be had in an even exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub variant_identifier: Option<String>,
    #[schema(min_length = 1, max_length = 1000)]
    pub title: String,
    /// Conditions of a return, like a final sale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, schema_with = tags_schema)]
    pub tags: Vec<String>,
    /// The unit price times the shipped units.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub product_amount_cents: i64,
    /// The tax on all shipped units.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub tax_amount_cents: i64,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub discount_amount_cents: i64,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub unit_price_amount_cents: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 2048)]
    pub image_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    pub weight: Option<f64>,
}

/// What the rest of an order asks about its lines, faulty ones included, so that one fault does
/// not hide another or look like one. The default is that of lines of which nothing is known.
#[derive(Debug, Default)]
pub(super) struct LineIndex {
    /// The units of each line whose identifier could be read, where they could be read too.
    quantities: HashMap<String, Option<i64>>,
    /// Whether every line's identifier could be read.
    all_named: bool,
    product_amount: Option<i64>,
    tax_amount: Option<i64>,
    /// Of all lines, as far as they could be read.
    units: i64,
}

pub(super) enum NamedLine {
    Known {
        quantity: i64,
    },
    Unknown,
    /// The line, or the one that might be it, is itself at fault.
    Unclear,
}

impl LineIndex {
    fn open() -> Self {
        Self {
            quantities: HashMap::new(),
            all_named: true,
            product_amount: Some(0),
            tax_amount: Some(0),
            units: 0,
        }
    }

    pub(super) fn line(&self, identifier: &str) -> NamedLine {
        match self.quantities.get(identifier) {
            Some(Some(quantity)) => NamedLine::Known { quantity: *quantity },
            None if self.all_named => NamedLine::Unknown,
            _ => NamedLine::Unclear,
        }
    }

    /// The sum over all lines, when each could be read.
    pub(super) fn product_amount(&self) -> Option<i64> {
        self.product_amount
    }

    pub(super) fn tax_amount(&self) -> Option<i64> {
        self.tax_amount
    }

    fn add_identifier(
        &mut self,
        line: &Object<'_>,
        identifier: Option<&String>,
        quantity: Option<i64>,
    ) {
        match identifier {
            Some(name) if self.quantities.contains_key(name) => {
                line.invalid("identifier", "another line of this order has the same identifier");
            }
            Some(name) => {
                self.quantities.insert(name.clone(), quantity);
            }
            None => self.all_named = false,
        }
    }

    fn add_unreadable(&mut self) {
        self.all_named = false;
        self.add_amounts(None, None);
    }

    fn add_amounts(&mut self, product: Option<i64>, tax: Option<i64>) {
        let sum = |sum: Option<i64>, amount: Option<i64>| sum?.checked_add(amount?);
        self.product_amount = sum(self.product_amount, product);
        self.tax_amount = sum(self.tax_amount, tax);
    }
}

/// Reads the lines of an order, and keeps a ledger of what could be read of them.
pub(super) fn read_all(order: &Object<'_>, sums: &mut Sums) -> (Option<Vec<OrderLine>>, LineIndex) {
    let mut ledger = None;
    let lines = array(1..=MAX_LINES, |field| {
        let ledger = ledger.get_or_insert_with(LineIndex::open);
        if !matches!(field.value(), JsonValue::Object(_)) {
            ledger.add_unreadable();
        }
        object(|line| OrderLine::read(line, ledger, sums))(field)
    });
    let lines = order.required("items", lines);
    let ledger = ledger.unwrap_or_default();
    if ledger.units > MAX_ORDER_UNITS {
        let detail = format!("must have at most {MAX_ORDER_UNITS} units over all lines");
        order.invalid("items", detail);
    }
    (lines, ledger)
}

impl OrderLine {
    fn read(line: &Object<'_>, ledger: &mut LineIndex, sums: &mut Sums) -> Option<Self> {
        let identifier = line.required("identifier", text(IDENTIFIER));
        let sku = line.optional("sku", text(WORD));
        let upc = line.optional("upc", text(WORD));
        let quantity = line.required("quantity", integer(QUANTITY));
        let shipped = line.required("quantity_shipped", integer(0..=*QUANTITY.end()));
        let canceled = line.required("quantity_canceled", integer(0..=*QUANTITY.end()));
        let tracking_number = line.optional("tracking_number", text(WORD));
        let shipped_date = line.optional("shipped_date", timestamp);
        let product_identifier = line.optional("product_identifier", text(WORD));
        let variant_identifier = line.optional("variant_identifier", text(WORD));
        let title = line.required("title", text(1..=1_000));
        let tags = line.optional("tags", array(0..=MAX_TAGS, text(WORD)));
        let product = line.required("product_amount_cents", integer(AMOUNT));
        let tax = line.required("tax_amount_cents", integer(AMOUNT));
        let discount = line.required("discount_amount_cents", integer(AMOUNT));
        let unit_price = line.required("unit_price_amount_cents", integer(AMOUNT));
        let image_url = line.optional("image_url", text(0..=2_048));
        let weight = line.optional("weight", number(0.0..=1e9));

        ledger.add_identifier(line, identifier.as_ref(), quantity);
        ledger.units += quantity.unwrap_or_default();
        ledger.add_amounts(product, tax);
        check_units(line, quantity, shipped, canceled);
        let product_of_units = unit_price.zip(shipped).map(|(price, units)| price * units);
        sums.compare(line, "product_amount_cents", product, product_of_units);

        let (sku, upc) = (sku.map(not_empty), upc.map(not_empty));
        if let (Some(None), Some(None)) = (&sku, &upc) {
            line.missing("sku");
            return None;
        }
        let (sku, upc) = (sku?, upc?);
        let product_identifier = not_empty(product_identifier?);
        Some(Self {
            identifier: identifier?,
            quantity: quantity?,
            quantity_shipped: shipped?,
            quantity_canceled: canceled?,
            tracking_number: not_empty(tracking_number?),
            shipped_date: shipped_date?,
            product_identifier: product_identifier
                .or_else(|| sku.clone())
                .or_else(|| upc.clone())?,
            variant_identifier: not_empty(variant_identifier?),
            title: title?,
            tags: tags?.unwrap_or_default(),
            product_amount_cents: product?,
            tax_amount_cents: tax?,
            discount_amount_cents: discount?,
            unit_price_amount_cents: unit_price?,
            image_url: image_url?,
            weight: weight?,
            sku,
            upc,
        })
    }
}

fn check_units(
    line: &Object<'_>,
    quantity: Option<i64>,
    shipped: Option<i64>,
    canceled: Option<i64>,
) {
    if let (Some(quantity), Some(shipped), Some(canceled)) = (quantity, shipped, canceled)
        && quantity < shipped + canceled
    {
        line.invalid("quantity", "must cover the shipped and the canceled units");
    }
}

fn not_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}
