//! Recording and resolving discrepancies. Those found in order snapshots are recorded once, because
//! snapshots repeat them; those caused by an event are recorded each time.

use api::returns::DiscrepancyResolution;
use chrono::{DateTime, Utc};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::returns::Discrepancy;
use platform::Timestamp;
use platform::database::{DatabaseError, column, prepared, sql};
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Recorded {
    pub(crate) merchant: MerchantId,
    pub(crate) position: i64,
    pub(crate) at: DateTime<Utc>,
    pub(crate) discrepancy: Discrepancy,
    /// `None` while the discrepancy is open.
    pub(crate) resolution: Option<DiscrepancyResolution>,
}

/// Records discrepancies that were not recorded before. A refund of an unknown return is found only when
/// the refund is new or gets another name, so it is recorded each time: a merchant may return to a name
/// that it corrected before.
pub(crate) async fn record_once(
    conn: &mut AsyncPgConnection,
    found: &[(&MerchantId, Discrepancy)],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let fingerprint = |discrepancy: &Discrepancy, detail: &Value| match discrepancy {
        Discrepancy::RefundOfUnknownReturn { .. } => None,
        _ => Some(Digest::of_value(detail).as_bytes().to_vec()),
    };
    insert(conn, found, fingerprint, now).await
}

/// Records discrepancies, each time. A carrier reports a parcel many times, so that its units were sent too late is
/// recorded once.
pub(crate) async fn record(
    conn: &AsyncPgConnection,
    found: &[(MerchantId, Discrepancy)],
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let found: Vec<_> = found.iter().map(|(merchant, it)| (merchant, it.clone())).collect();
    let fingerprint = |discrepancy: &Discrepancy, detail: &Value| match discrepancy {
        Discrepancy::SentAfterExpiry { .. } => Some(Digest::of_value(detail).as_bytes().to_vec()),
        _ => None,
    };
    insert(conn, &found, fingerprint, now).await
}

/// Rows without a fingerprint are always inserted.
async fn insert(
    mut conn: &AsyncPgConnection,
    found: &[(&MerchantId, Discrepancy)],
    fingerprint: impl Fn(&Discrepancy, &Value) -> Option<Vec<u8>>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    if found.is_empty() {
        return Ok(());
    }
    let details: Result<Vec<_>, _> =
        found.iter().map(|(_, discrepancy)| serde_json::to_value(discrepancy)).collect();
    let details =
        details.map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    let pairs = found.iter().zip(&details);
    let fingerprints: Vec<_> = pairs.map(|((_, it), detail)| fingerprint(it, detail)).collect();
    let statement = sql(
        include_str!("insert_discrepancies.sql"),
        (
            column(found, |(merchant, _)| merchant.as_str()),
            column(found, |(_, it)| it.kind()),
            column(found, |(_, it)| it.order_identifier()),
            column(found, |(_, it)| it.rma_identifier()),
            &details,
            fingerprints,
            now,
        ),
    );
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// Resolves a discrepancy. An assignment also replaces an earlier resolution.
pub(crate) async fn resolve(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    position: i64,
    resolution: &DiscrepancyResolution,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE discrepancies SET resolved_at = $3, resolved_by = $4, resolution_note = $5, \
             assigned_rma_identifier = $6 \
         WHERE merchant = $1 AND position = $2 AND (resolved_at IS NULL OR $6 IS NOT NULL)",
        (
            merchant.as_str(),
            position,
            resolution.at,
            &resolution.by,
            &resolution.note,
            &resolution.rma_identifier,
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Resolves the open discrepancies of refunds of an order that named an unknown return.
pub(crate) async fn resolve_refunds(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    order_identifier: &str,
    refunds: &[&str],
    resolution: &DiscrepancyResolution,
) -> Result<(), DatabaseError> {
    if refunds.is_empty() {
        return Ok(());
    }
    let statement = sql(
        "UPDATE discrepancies SET resolved_at = $4, resolved_by = $5, resolution_note = $6, \
             assigned_rma_identifier = $7 \
         WHERE merchant = $1 AND order_identifier = $2 AND kind = 'refund_of_unknown_return' \
             AND detail->>'refund_identifier' = ANY ($3) AND resolved_at IS NULL",
        (
            merchant.as_str(),
            order_identifier,
            refunds,
            resolution.at,
            &resolution.by,
            &resolution.note,
            &resolution.rma_identifier,
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
