//! Receipts: units that arrive at a warehouse, checked against the ASNs of their merchant.
//!
//! See docs/decisions/receipts.md.

use api::warehouse::ReceiptDetails;
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use platform::http::PageLimit;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::error::Error;
use crate::store::receipts::{self as store, NewReceipt, StoredReceipt};

/// The receipts of a request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReceivedUnits {
    #[schema(example = "2 units received")]
    message: String,
    /// In the order of the request.
    receipts: Vec<ReceiptView>,
}

impl ReceivedUnits {
    pub(crate) fn new(receipts: Vec<ReceiptView>) -> Self {
        let units = if receipts.len() == 1 { "unit" } else { "units" };
        Self { message: format!("{} {units} received", receipts.len()), receipts }
    }
}

/// The first receipt of a unit, or its first rejection if it was not received.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ReceiptView {
    id: Uuid,
    asn_number: String,
    line_identifier: String,
    unit_identifier: String,
    received_at: DateTime<Utc>,
}

impl From<&NewReceipt> for ReceiptView {
    fn from(new: &NewReceipt) -> Self {
        Self {
            id: new.id,
            asn_number: new.asn_number.clone(),
            line_identifier: new.line_identifier.clone(),
            unit_identifier: new.unit_identifier.clone(),
            received_at: new.received_at,
        }
    }
}

impl From<&StoredReceipt> for ReceiptView {
    fn from(stored: &StoredReceipt) -> Self {
        Self {
            id: stored.id,
            asn_number: stored.asn_number.clone(),
            line_identifier: stored.line_identifier.clone(),
            unit_identifier: stored.unit_identifier.clone(),
            received_at: stored.received_at,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptPage {
    /// Newest first.
    receipts: Vec<ReceiptDetails>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn details(stored: StoredReceipt) -> Result<ReceiptDetails, Error> {
    let StoredReceipt { merchant, id, received_at, message, .. } = stored;
    Ok(ReceiptDetails { merchant, id, received_at, message: serde_json::from_str(&message)? })
}

/// Lists receipts, newest first: of all merchants, of one merchant, or of one of its ASNs.
pub(crate) async fn list(
    app: &App,
    merchant: Option<&MerchantId>,
    asn_number: Option<&str>,
    after: Option<Uuid>,
    limit: PageLimit,
) -> Result<ReceiptPage, Error> {
    let mut conn = app.pool.reader(merchant.map(MerchantId::as_str)).await?;
    let mut found = store::page(&mut conn, merchant, asn_number, after, limit.rows()).await?;
    let next = limit.next(&mut found, |stored| stored.id.to_string());
    let receipts: Result<_, Error> = found.into_iter().map(details).collect();
    Ok(ReceiptPage { receipts: receipts?, next })
}
