//! A line of an order: a quantity of one product.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::limits::{
    AMOUNT, IDENTIFIER, MAX_LINES, MAX_ORDER_UNITS, MAX_TAGS, OPTIONAL_TEXT, QUANTITY, tags_schema,
};
use super::line_index::{LineIndex, LineUnits};
use super::sums::SumChecks;
use crate::json::{JsonValue, Object, array, integer, number, object, text, timestamp};

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrderLine {
    /// Unique in the order. RMA messages contain it as `order_line_item_identifier`.
    #[schema(min_length = 1, max_length = 255)]
    pub identifier: String,
    /// Every line has a SKU or a UPC.
    #[schema(max_length = 255)]
    pub sku: Option<String>,
    #[schema(max_length = 255)]
    pub upc: Option<String>,
    /// At least the sum of shipped and canceled units.
    #[schema(minimum = 1, maximum = 1000)]
    pub quantity: i64,
    #[schema(minimum = 0, maximum = 1000)]
    pub quantity_shipped: i64,
    #[schema(minimum = 0, maximum = 1000)]
    pub quantity_canceled: i64,
    #[schema(max_length = 255)]
    pub tracking_number: Option<String>,
    /// The ship date. The return window can start here.
    pub shipped_date: Option<DateTime<Utc>>,
    /// The day on which the shopper received the line. Rules can count days from it.
    pub delivered_date: Option<DateTime<Utc>>,
    /// The merchant's product identifier. Defaults to the SKU, or else to the UPC.
    #[schema(required = false, nullable, max_length = 255)]
    pub product_identifier: String,
    /// Identifies the SKUs that are available for an even exchange.
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
    #[schema(max_length = 2048)]
    pub image_url: Option<String>,
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    pub weight: Option<f64>,
    /// The brand that sold the line, if it is not that of the order.
    #[schema(max_length = 255)]
    pub concept: Option<String>,
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
    if index.units() > MAX_ORDER_UNITS {
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
        let delivered_date = line.optional("delivered_date", timestamp);
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
        let concept = line.optional("concept", text(OPTIONAL_TEXT));

        let amounts = [product, tax, discount];
        let units = quantity.map(|quantity| LineUnits::new(quantity, shipped, amounts));
        index.add(line, identifier.as_ref(), units);
        index.add_amounts(amounts);
        check_quantities(line, quantity, shipped, canceled);
        let product_of_units = unit_price.zip(shipped).map(|(price, units)| price * units);
        sums.compare(line, "product_amount_cents", product, product_of_units);

        let sku = sku.map(not_empty);
        let upc = upc.map(not_empty);
        if let (Some(None), Some(None)) = (&sku, &upc) {
            line.missing("sku");
            return None;
        }
        let sku = sku?;
        let upc = upc?;
        let product_identifier = not_empty(product_identifier?);
        Some(Self {
            identifier: identifier?,
            quantity: quantity?,
            quantity_shipped: shipped?,
            quantity_canceled: canceled?,
            tracking_number: not_empty(tracking_number?),
            shipped_date: shipped_date?,
            delivered_date: delivered_date?,
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
            concept: concept?,
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
