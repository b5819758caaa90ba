//! Receipts are checked against the ASNs of their merchant, and take the fields that they omit from them.

use std::collections::BTreeSet;

use diesel_async::AsyncPgConnection;
use domain::json::{FieldError, ValidationError};
use domain::warehouse::{ExpectedUnit, InventoryReceipt, ReceiptBatch};
use futures_util::future::join;

use crate::error::Error;
use crate::record_keys::{self, RecordKeys};
use crate::request::Request;
use crate::store::receipts as store;

/// Adds the fields of the ASNs. Also returns the keys that the receipts have and their ASNs do not have. A
/// receipt with an unknown ASN or line is an error.
pub(crate) async fn complete(
    conn: &AsyncPgConnection,
    request: &Request<'_>,
    mut receipts: ReceiptBatch,
) -> Result<(Vec<InventoryReceipt>, RecordKeys), Error> {
    let each = receipts.receipts.iter();
    let keys: Vec<_> =
        each.map(|it| (it.asn_number.to_string(), it.line_identifier.to_string())).collect();
    let numbers: BTreeSet<_> = keys.iter().map(|(number, _)| number.as_str()).collect();
    let wanted = keys.iter().map(|(number, line)| (number.as_str(), line.as_str())).collect();
    // Both statements are sent at once and run in this order: lines are read under the lock of their ASN.
    let (headers, lines) = join(
        store::headers(conn, request.merchant, &numbers),
        store::lines(conn, request.merchant, &wanted),
    )
    .await;
    let (headers, lines) = (headers?, lines?);
    let mut completed = std::mem::take(&mut receipts.receipts);
    let (mut errors, mut new_keys) = (Vec::new(), RecordKeys::new());
    for (index, (receipt, key)) in completed.iter_mut().zip(&keys).enumerate() {
        let path = |field: &str| receipts.path(index, field);
        let error = match (headers.get(&key.0), lines.get(key)) {
            (Some(header), Some(line)) => {
                let completed = receipt.complete(&ExpectedUnit { header, line }, path);
                new_keys.extend(record_keys::of_receipt(receipt, header, line));
                completed.err()
            }
            (Some(_), None) => {
                let detail = format!("ASN {} has no line {}", key.0, key.1);
                Some(FieldError::invalid(path("line_identifier"), detail))
            }
            (None, _) => {
                let detail = format!("there is no ASN {}", key.0);
                Some(FieldError::invalid(path("asn_number"), detail))
            }
        };
        errors.extend(error);
    }
    if errors.is_empty() {
        Ok((completed, new_keys))
    } else {
        Err(ValidationError { errors, omitted: 0 }.into())
    }
}
