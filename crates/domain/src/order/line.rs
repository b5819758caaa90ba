//! A line of an order: a quantity of one product.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::limits::{
    AMOUNT, IDENTIFIER, MAX_LINES, MAX_ORDER_UNITS, MAX_TAGS, OPTIONAL_TEXT, QUANTITY, tags_schema,
};
use super::sums::SumChecks;
use crate::json::{JsonValue, Object, array, integer, number, object, text, timestamp};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderLine {
    /// Unique in the order. RMA messages contain it as `order_line_item_identifier`.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    /// Every line has a SKU or a UPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    /// At least the sum of shipped and canceled units.
    #[schema(minimum = 1, maximum = 1000)]
    pub quantity: i64,
    #[schema(minimum = 0, maximum = 1000)]
    pub quantity_shipped: i64,
    #[schema(minimum = 0, maximum = 1000)]
    pub quantity_canceled: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub tracking_number: Option<String>,
    /// The ship date. The return window can start here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shipped_date: Option<DateTime<Utc>>,
    /// The merchant's product identifier. Defaults to the SKU, or else to the UPC.
    #[schema(required = false, nullable, max_length = 255)]
    pub product_identifier: String,
    /// Identifies the SKUs that are available for an even exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub variant_identifier: Option<String>,
    #[schema(min_length = 1, max_length = 1000)]
    pub title: String,
    /// Return conditions, for example a final sale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, schema_with = tags_schema)]
    pub tags: Vec<String>,
    /// The unit price multiplied by the shipped units.
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000i64)]
    pub product_amount_cents: i64,
    /// The tax of all shipped units.
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

/// The lines of an order by identifier, with their quantities and sums. Invalid lines are included,
/// so that an invalid line causes no further errors in refunds and sums. The default is an index of
/// lines that could not be read at all.
#[derive(Debug, Default)]
pub(super) struct LineIndex {
    /// The quantity of each line with a valid identifier. It is `None` when the quantity is invalid.
    quantities: HashMap<String, Option<i64>>,
    all_identifiers_valid: bool,
    product_amount: Option<i64>,
    tax_amount: Option<i64>,
    /// The sum of all valid quantities.
    units: i64,
}

/// The result of looking up a line.
pub(super) enum LineLookup {
    Known {
        quantity: i64,
    },
    Unknown,
    /// The line itself is invalid, or an invalid line could be the one.
    Invalid,
}

impl LineIndex {
    fn new() -> Self {
        Self {
            quantities: HashMap::new(),
            all_identifiers_valid: true,
            product_amount: Some(0),
            tax_amount: Some(0),
            units: 0,
        }
    }

    pub(super) fn find(&self, identifier: &str) -> LineLookup {
        match self.quantities.get(identifier) {
            Some(Some(quantity)) => LineLookup::Known { quantity: *quantity },
            None if self.all_identifiers_valid => LineLookup::Unknown,
            _ => LineLookup::Invalid,
        }
    }

    /// The sum over all lines. It is `None` when an amount is invalid.
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
            Some(identifier) if self.quantities.contains_key(identifier) => {
                line.invalid("identifier", "another line of this order has the same identifier");
            }
            Some(identifier) => {
                self.quantities.insert(identifier.clone(), quantity);
            }
            None => self.all_identifiers_valid = false,
        }
    }

    fn add_non_object(&mut self) {
        self.all_identifiers_valid = false;
        self.add_amounts(None, None);
    }

    fn add_amounts(&mut self, product: Option<i64>, tax: Option<i64>) {
        let sum = |sum: Option<i64>, amount: Option<i64>| sum?.checked_add(amount?);
        self.product_amount = sum(self.product_amount, product);
        self.tax_amount = sum(self.tax_amount, tax);
    }
}

/// Reads the lines of an order, and an index that also covers invalid lines.
pub(super) fn read_all(
    order: &Object<'_>,
    sums: &mut SumChecks,
) -> (Option<Vec<OrderLine>>, LineIndex) {
    let mut index = None;
    let lines = array(1..=MAX_LINES, |field| {
        let index = index.get_or_insert_with(LineIndex::new);
        if !matches!(field.value(), JsonValue::Object(_)) {
            index.add_non_object();
        }
        object(|line| OrderLine::read(line, index, sums))(field)
    });
    let lines = order.required("items", lines);
    let index = index.unwrap_or_default();
    if index.units > MAX_ORDER_UNITS {
        let detail = format!("must have at most {MAX_ORDER_UNITS} units over all lines");
        order.invalid("items", detail);
    }
    (lines, index)
}

impl OrderLine {
    fn read(line: &Object<'_>, index: &mut LineIndex, sums: &mut SumChecks) -> Option<Self> {
        let identifier = line.required("identifier", text(IDENTIFIER));
        let sku = line.optional("sku", text(OPTIONAL_TEXT));
        let upc = line.optional("upc", text(OPTIONAL_TEXT));
        let quantity = line.required("quantity", integer(QUANTITY));
        let shipped = line.required("quantity_shipped", integer(0..=*QUANTITY.end()));
        let canceled = line.required("quantity_canceled", integer(0..=*QUANTITY.end()));
        let tracking_number = line.optional("tracking_number", text(OPTIONAL_TEXT));
        let shipped_date = line.optional("shipped_date", timestamp);
        let product_identifier = line.optional("product_identifier", text(OPTIONAL_TEXT));
        let variant_identifier = line.optional("variant_identifier", text(OPTIONAL_TEXT));
        let title = line.required("title", text(1..=1_000));
        let tags = line.optional("tags", array(0..=MAX_TAGS, text(OPTIONAL_TEXT)));
        let product = line.required("product_amount_cents", integer(AMOUNT));
        let tax = line.required("tax_amount_cents", integer(AMOUNT));
        let discount = line.required("discount_amount_cents", integer(AMOUNT));
        let unit_price = line.required("unit_price_amount_cents", integer(AMOUNT));
        let image_url = line.optional("image_url", text(0..=2_048));
        let weight = line.optional("weight", number(0.0..=1e9));

        index.add_identifier(line, identifier.as_ref(), quantity);
        index.units += quantity.unwrap_or_default();
        index.add_amounts(product, tax);
        check_quantities(line, quantity, shipped, canceled);
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

fn check_quantities(
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
