//! Receipts are checked against the ASNs of their merchant, and take the fields that they omit from them.

use std::collections::{BTreeSet, HashMap};
use std::slice;

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::json::{FieldError, ValidationError};
use domain::warehouse::{ExpectedUnit, InboundHeader, InboundLine, InventoryReceipt, ReceiptBatch};
use futures_util::future::join;
use platform::batching::Processing;

use crate::error::Error;
use crate::record_keys::OrderKey;
use crate::record_keys::{self, RecordKeys};
use crate::store::receipts::{self as store, AsnKey};

/// The ASNs of some receipts, with the lines that the receipts name.
pub(crate) struct ExpectedUnits(HashMap<AsnKey, ExpectedAsn>);

struct ExpectedAsn {
    header: InboundHeader,
    lines: HashMap<String, InboundLine>,
}

impl ExpectedUnits {
    /// Loads the ASNs of the receipts of these merchants, and locks them against changes until the end of the
    /// transaction. In a batch, ASNs that another transaction has locked are skipped.
    pub(crate) async fn load(
        conn: &AsyncPgConnection,
        requested: &[(&MerchantId, &ReceiptBatch)],
        processing: Processing,
    ) -> Result<Self, Error> {
        let receipts = requested
            .iter()
            .flat_map(|(merchant, it)| it.receipts.iter().map(|it| (*merchant, it)));
        let lines: BTreeSet<_> = receipts
            .map(|(merchant, it)| (asn_key(merchant, it), it.line_identifier.to_string()))
            .collect();
        let asns: BTreeSet<_> = lines.iter().map(|(asn, _)| asn).collect();
        // Both statements are sent at once and run in this order: lines are read under the lock of their ASN.
        let (headers, lines) =
            join(store::headers(conn, &asns, processing), store::lines(conn, &lines)).await;
        let asn = |(key, header)| (key, ExpectedAsn { header, lines: HashMap::new() });
        let mut asns: HashMap<_, _> = headers?.into_iter().map(asn).collect();
        for (key, identifier, line) in lines? {
            if let Some(asn) = asns.get_mut(&key) {
                asn.lines.insert(identifier, line);
            }
        }
        Ok(Self(asns))
    }

    /// The orders and RMAs that the receipts or their ASNs name.
    pub(crate) fn orders(&self, requested: &[(&MerchantId, &ReceiptBatch)]) -> BTreeSet<OrderKey> {
        let mut orders = orders_of(requested);
        for ((merchant, _), asn) in &self.0 {
            let lines = asn.lines.values();
            let keys =
                lines.map(|it| record_keys::of_inbound_asn(&asn.header, slice::from_ref(it)));
            for keys in keys {
                orders.extend(record_keys::orders(merchant, &keys));
            }
        }
        orders
    }

    /// Whether all ASNs of a merchant's receipts were loaded.
    pub(crate) fn has_asns_of(&self, merchant: &MerchantId, receipts: &ReceiptBatch) -> bool {
        receipts.receipts.iter().all(|it| self.0.contains_key(&asn_key(merchant, it)))
    }

    /// Adds the fields of the ASNs. Also returns the keys that the receipts have and their ASNs do not have.
    /// A receipt with an unknown ASN or line is an error.
    pub(crate) fn complete(
        &self,
        merchant: &MerchantId,
        receipts: &ReceiptBatch,
    ) -> Result<(Vec<InventoryReceipt>, RecordKeys), Error> {
        let mut completed = receipts.receipts.clone();
        let mut errors = Vec::new();
        let mut new_keys = RecordKeys::new();
        for (index, receipt) in completed.iter_mut().enumerate() {
            let path = |field: &str| receipts.path(index, field);
            let number = &receipt.asn_number;
            let line = receipt.line_identifier.to_string();
            let asn = self.0.get(&asn_key(merchant, receipt));
            let error = match asn.map(|asn| (&asn.header, asn.lines.get(&line))) {
                Some((header, Some(line))) => {
                    let completed = receipt.complete(&ExpectedUnit { header, line }, path);
                    new_keys.extend(record_keys::of_receipt(receipt, header, line));
                    completed.err()
                }
                Some((_, None)) => {
                    let detail = format!("ASN {number} has no line {line}");
                    Some(FieldError::invalid(path("line_identifier"), detail))
                }
                None => {
                    let detail = format!("there is no ASN {number}");
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
}

/// The orders and RMAs that receipts name.
pub(crate) fn orders_of(requested: &[(&MerchantId, &ReceiptBatch)]) -> BTreeSet<OrderKey> {
    let mut orders = BTreeSet::new();
    for (merchant, batch) in requested {
        for receipt in &batch.receipts {
            let keys = record_keys::all_of_receipt(receipt);
            orders.extend(record_keys::orders(merchant.as_str(), &keys));
        }
    }
    orders
}

fn asn_key(merchant: &MerchantId, receipt: &InventoryReceipt) -> AsnKey {
    (merchant.to_string(), receipt.asn_number.to_string())
}
