//! The units of a request that is stored, and its response.

use std::collections::{HashMap, HashSet};

use domain::access::MerchantId;
use domain::warehouse::InventoryReceipt;
use platform::{Timestamp, database::DatabaseError};

use crate::error::Error;
use crate::receipts::{ReceiptView, ReceivedUnits};
use crate::record_keys::RecordKeys;
use crate::store::new_id;
use crate::store::receipts::{NewReceipt, StoredReceipt, UnitKey};

/// A receipt with all fields.
pub(crate) struct NewUnit {
    pub(crate) receipt: InventoryReceipt,
    pub(crate) row: NewReceipt,
}

/// The units of a valid request, in order.
pub(crate) struct NewUnits {
    pub(crate) units: Vec<NewUnit>,
    /// Keys that the receipts have and their ASNs do not have.
    pub(crate) keys: RecordKeys,
}

impl NewUnits {
    pub(crate) fn new(
        merchant: &MerchantId,
        completed: Vec<InventoryReceipt>,
        keys: RecordKeys,
        at: Timestamp,
    ) -> Result<Self, Error> {
        let unit = |receipt| Ok(NewUnit { row: row(merchant, &receipt, at)?, receipt });
        let units: Result<_, Error> = completed.into_iter().map(unit).collect();
        Ok(Self { units: units?, keys })
    }

    /// The merchant, ASN number and identifier of each unit.
    pub(crate) fn owned_keys(&self) -> HashSet<(String, String, String)> {
        let owned = |unit: &NewUnit| {
            let (merchant, asn_number, unit_identifier) = unit.row.key();
            (merchant.to_owned(), asn_number.to_owned(), unit_identifier.to_owned())
        };
        self.units.iter().map(owned).collect()
    }

    /// The response, with one view for each unit. A unit that was stored before gets its first receipt.
    pub(crate) fn response(
        &self,
        first_receipts: &HashMap<UnitKey<'_>, &StoredReceipt>,
    ) -> Result<String, Error> {
        let view = |NewUnit { row, .. }: &NewUnit| match first_receipts.get(&row.key()) {
            Some(first) => ReceiptView::from(*first),
            None => ReceiptView::from(row),
        };
        let received = ReceivedUnits::new(self.units.iter().map(view).collect());
        Ok(serde_json::to_string(&received)?)
    }
}

fn row(
    merchant: &MerchantId,
    receipt: &InventoryReceipt,
    received_at: Timestamp,
) -> Result<NewReceipt, Error> {
    // A receipt without an identifier is not valid.
    let unit = receipt.unit_identifier.as_ref().ok_or_else(|| {
        let asn_number = &receipt.asn_number;
        DatabaseError::Internal(format!("a receipt of ASN {asn_number} has no unit identifier"))
    })?;
    Ok(NewReceipt {
        merchant: merchant.clone(),
        id: new_id(received_at),
        asn_number: receipt.asn_number.to_string(),
        line_identifier: receipt.line_identifier.to_string(),
        unit_identifier: unit.to_string(),
        message: serde_json::to_string(receipt)?,
        rejected: receipt.reject_reason.is_some(),
        received_at,
    })
}
