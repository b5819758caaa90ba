//! The body of a request that reports receipts: one receipt, or a batch of them.

use utoipa::ToSchema;

use super::receipt::InventoryReceipt;
use crate::json::{Document, ValidationError, array, object};

/// The maximum number of units of a batch.
const MAX_RECEIPTS: usize = 10_000;

/// Receipts that are accepted together or not at all.
#[derive(Debug, Clone, PartialEq, Eq, ToSchema)]
pub struct ReceiptBatch {
    #[schema(min_items = 1, max_items = 10_000)]
    pub receipts: Vec<InventoryReceipt>,
    /// Whether the body was one receipt without a list.
    #[schema(ignore)]
    is_single: bool,
}

/// The schema of the body.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum ReceiptsRequest {
    One(Box<InventoryReceipt>),
    Batch(ReceiptBatch),
}

impl ReceiptBatch {
    pub fn read(document: &Document) -> Result<Self, ValidationError> {
        document.read(object(|body| {
            if body.has("receipts") {
                let receipt = object(InventoryReceipt::read);
                let receipts = body.required("receipts", array(1..=MAX_RECEIPTS, receipt))?;
                Some(Self { receipts, is_single: false })
            } else {
                let receipts = vec![InventoryReceipt::read(body)?];
                Some(Self { receipts, is_single: true })
            }
        }))
    }

    /// The JSONPath of a field of a receipt.
    pub fn path(&self, index: usize, field: &str) -> String {
        if self.is_single { format!("$.{field}") } else { format!("$.receipts[{index}].{field}") }
    }
}
