//! Finds records by ASN number, tracking number or order identifier.
//!
//! See docs/decisions/look-up.md.

use api::warehouse::RecordView;
use domain::access::MerchantId;
use platform::http::{BadCursor, PageLimit};
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::record_keys::Key;
use crate::store::record_keys::{self as store, FoundRecord, RecordPosition};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordPage {
    /// Sorted by merchant, kind and number.
    records: Vec<RecordView>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<FoundRecord> for RecordView {
    fn from(found: FoundRecord) -> Self {
        let FoundRecord { merchant, record, created_at } = found;
        Self { merchant, kind: record.kind, number: record.number, created_at }
    }
}

/// Finds the records of a merchant, or of all merchants, that have a key.
pub(crate) async fn find(
    app: &App,
    merchant: Option<&MerchantId>,
    key: &Key,
    after: &RecordPosition,
    limit: PageLimit,
) -> Result<RecordPage, Error> {
    let mut conn = app.pool.reader(merchant.map(MerchantId::as_str)).await?;
    let mut found = store::find(&mut conn, merchant, key, after, limit.rows()).await?;
    let next = limit.next(&mut found, |FoundRecord { merchant, record, .. }| {
        let kind: &str = record.kind.into();
        format!("{merchant}/{kind}/{}", record.number)
    });
    Ok(RecordPage { records: found.into_iter().map(RecordView::from).collect(), next })
}

pub(crate) fn read_cursor(cursor: &str) -> Result<RecordPosition, BadCursor> {
    let (merchant, rest) = cursor.split_once('/').ok_or(BadCursor)?;
    let (kind, number) = rest.split_once('/').ok_or(BadCursor)?;
    let [merchant, kind, number] = [merchant, kind, number].map(str::to_owned);
    Ok(RecordPosition { merchant, kind, number })
}
