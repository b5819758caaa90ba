//! Requests for the labels of parcels. A transaction that locks one has locked its return before.

use std::time::Duration;

use diesel::OptionalExtension as _;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::labels::{BoughtLabel, LabelFormat, LabelRefusal, LabelRequested, LabelState};
use domain::returns::UnitId;
use platform::Timestamp;
use platform::database::{DatabaseError, column, prepared, sql};
use uuid::Uuid;

use super::orders::ResourceKey;
use super::{ALL_MERCHANTS, read, unreadable, write};

/// A request that is sent to the provider with this transaction.
#[derive(Debug)]
pub(crate) struct NewRequest {
    merchant: MerchantId,
    id: Uuid,
    rma_identifier: String,
    parcel: i32,
    parcel_count: i32,
    units: String,
    requested_at: Timestamp,
}

impl NewRequest {
    pub(crate) fn new(requested: &LabelRequested) -> Result<Self, DatabaseError> {
        let units: Vec<_> = requested.units.iter().map(|unit| &unit.id).collect();
        Ok(Self {
            merchant: requested.merchant.clone(),
            id: requested.label_request_id,
            rma_identifier: requested.rma_identifier.clone(),
            parcel: requested.parcel,
            parcel_count: requested.parcel_count,
            units: write(&units)?,
            requested_at: requested.requested_at,
        })
    }
}

/// A stored request.
#[derive(Debug, Clone)]
pub(crate) struct LabelRequest {
    pub(crate) merchant: MerchantId,
    pub(crate) id: Uuid,
    pub(crate) rma_identifier: String,
    pub(crate) parcel: i32,
    pub(crate) parcel_count: i32,
    pub(crate) state: LabelState,
    pub(crate) units: Vec<UnitId>,
    pub(crate) requested_at: Timestamp,
    pub(crate) tracking_number: Option<String>,
    /// The message that canceled the request.
    pub(crate) cancellation: Option<Uuid>,
    /// Whether the message to the provider is dead.
    pub(crate) is_undeliverable: bool,
}

platform::rows! {
    struct RequestRow {
        merchant: String,
        id: Uuid,
        rma_identifier: String,
        parcel: i32,
        parcel_count: i32,
        state: String,
        units: String,
        requested_at: Timestamp,
        tracking_number: Option<String>,
        cancellation: Option<Uuid>,
        undeliverable_since: Option<Timestamp>,
    }
}

const COLUMNS: &str = "merchant, id, rma_identifier, parcel, parcel_count, state, units, requested_at, \
     tracking_number, cancellation, undeliverable_since";

impl RequestRow {
    fn read(self) -> Result<LabelRequest, DatabaseError> {
        Ok(LabelRequest {
            merchant: self.merchant.parse().map_err(unreadable)?,
            id: self.id,
            rma_identifier: self.rma_identifier,
            parcel: self.parcel,
            parcel_count: self.parcel_count,
            state: self.state.parse().map_err(unreadable)?,
            units: read(&self.units)?,
            requested_at: self.requested_at,
            tracking_number: self.tracking_number,
            cancellation: self.cancellation,
            is_undeliverable: self.undeliverable_since.is_some(),
        })
    }
}

/// Adds requests. Fails with a violation of the constraint `label_requests_live` if a parcel has a live one.
pub(crate) async fn insert(
    mut conn: &AsyncPgConnection,
    new: &[NewRequest],
) -> Result<(), DatabaseError> {
    if new.is_empty() {
        return Ok(());
    }
    let statement = sql(
        "INSERT INTO label_requests (merchant, id, rma_identifier, parcel, parcel_count, state, \
             units, requested_at, updated_at) \
         SELECT merchant, id, rma_identifier, parcel, parcel_count, 'requested', units, \
             requested_at, requested_at \
         FROM unnest((SELECT $1), $2, $3, $4, $5, $6, $7) \
             AS new (merchant, id, rma_identifier, parcel, parcel_count, units, requested_at)",
        (
            column(new, |it| it.merchant.as_str()),
            column(new, |it| it.id),
            column(new, |it| it.rma_identifier.as_str()),
            column(new, |it| it.parcel),
            column(new, |it| it.parcel_count),
            column(new, |it| it.units.as_str()),
            column(new, |it| it.requested_at),
        ),
    );
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// Finds a merchant's request.
pub(crate) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
) -> Result<Option<LabelRequest>, DatabaseError> {
    one(conn, merchant, id, "").await
}

/// Locks a merchant's request until the end of the transaction.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
) -> Result<Option<LabelRequest>, DatabaseError> {
    one(conn, merchant, id, " FOR NO KEY UPDATE").await
}

async fn one(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
    lock: &str,
) -> Result<Option<LabelRequest>, DatabaseError> {
    let query = sql(
        format!("SELECT {COLUMNS} FROM label_requests WHERE merchant = $1 AND id = $2{lock}"),
        (merchant.as_str(), id),
    );
    let row: Option<RequestRow> = prepared(query).get_result(conn).await.optional()?;
    row.map(RequestRow::read).transpose()
}

/// Locks the live requests of locked returns, each return by its merchant and identifier, oldest first. `IS TRUE` keeps
/// PostgreSQL from reading all requests of a merchant with a plan that was made while the table was empty.
pub(crate) async fn lock_live(
    conn: &mut AsyncPgConnection,
    returns: &[ResourceKey<'_>],
) -> Result<Vec<LabelRequest>, DatabaseError> {
    if returns.is_empty() {
        return Ok(Vec::new());
    }
    let (merchants, identifiers): (Vec<_>, Vec<_>) = returns.iter().copied().unzip();
    let query = sql(
        format!(
            "SELECT found.* FROM unnest((SELECT $1), $2) AS wanted (merchant, rma_identifier), LATERAL ( \
                 SELECT {COLUMNS} FROM label_requests AS own \
                 WHERE own.rma_identifier = wanted.rma_identifier \
                     AND (own.merchant = wanted.merchant) IS TRUE \
                     AND own.state IN ('requested', 'accepted', 'bought') \
                 ORDER BY own.id FOR NO KEY UPDATE \
             ) AS found"
        ),
        (merchants, identifiers),
    );
    let rows: Vec<RequestRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(RequestRow::read).collect()
}

platform::rows! { struct Age { milliseconds: i64 } }

/// The age of the oldest request in a state, of those since a time, by the clock of the database; zero if there is none.
pub(crate) async fn oldest_open(
    conn: &mut AsyncPgConnection,
    state: LabelState,
    since: Timestamp,
) -> Result<Duration, DatabaseError> {
    // Ids begin with their time in milliseconds.
    let millis = u128::try_from(since.timestamp_millis()).unwrap_or_default();
    let query = sql(
        format!(
            "SELECT coalesce(extract(epoch FROM now() - ( \
                 SELECT requested_at FROM label_requests \
                 WHERE {ALL_MERCHANTS} AND state = $1 AND id >= $2 ORDER BY id LIMIT 1 \
             )) * 1000, 0)::bigint AS milliseconds"
        ),
        (state.as_str(), Uuid::from_u128(millis << 80)),
    );
    let age: Age = prepared(query).get_result(conn).await?;
    Ok(Duration::from_millis(u64::try_from(age.milliseconds).unwrap_or_default()))
}

/// A label as it is stored.
#[derive(Debug, Default)]
pub(crate) struct SealedLabel {
    pub(crate) document: Option<(LabelFormat, Vec<u8>)>,
    pub(crate) qr_code: Option<Vec<u8>>,
}

/// Removes a sealed label.
pub(super) const UNSEALED: &str =
    "document = NULL, document_format = NULL, qr_code = NULL, sealed_at = NULL";

platform::rows! {
    struct DocumentRow {
        format: String,
        document: Vec<u8>,
    }

    struct CodeRow { qr_code: Vec<u8> }
}

/// The sealed document of a merchant's request.
pub(crate) async fn sealed_document(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
) -> Result<Option<(LabelFormat, Vec<u8>)>, DatabaseError> {
    let query = sql(
        "SELECT document_format AS format, document FROM label_requests \
         WHERE merchant = $1 AND id = $2 AND document IS NOT NULL",
        (merchant.as_str(), id),
    );
    let row: Option<DocumentRow> = prepared(query).get_result(conn).await.optional()?;
    row.map(|row| Ok((row.format.parse().map_err(unreadable)?, row.document))).transpose()
}

/// The sealed code of a merchant's request.
pub(crate) async fn sealed_code(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    id: Uuid,
) -> Result<Option<Vec<u8>>, DatabaseError> {
    let query = sql(
        "SELECT qr_code FROM label_requests \
         WHERE merchant = $1 AND id = $2 AND qr_code IS NOT NULL",
        (merchant.as_str(), id),
    );
    let row: Option<CodeRow> = prepared(query).get_result(conn).await.optional()?;
    Ok(row.map(|row| row.qr_code))
}

/// Removes up to `most` labels that were sealed before a time. Returns their number. Others that lock such a request
/// are not waited for.
pub(crate) async fn remove_sealed(
    conn: &mut AsyncPgConnection,
    before: Timestamp,
    most: i64,
) -> Result<usize, DatabaseError> {
    let statement = sql(
        format!(
            "UPDATE label_requests SET {UNSEALED} WHERE ctid = ANY (ARRAY ( \
                 SELECT ctid FROM label_requests WHERE sealed_at < $1 \
                 LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED))"
        ),
        (before, most),
    );
    Ok(statement.execute(conn).await?)
}

/// Records that the provider makes the label later.
pub(crate) async fn accept(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE label_requests SET state = 'accepted', updated_at = $3, detail = NULL, \
             undeliverable_since = NULL \
         WHERE merchant = $1 AND id = $2",
        (request.merchant.as_str(), request.id, now),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records the label that the provider made.
pub(crate) async fn buy(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    label: &BoughtLabel,
    sealed: &SealedLabel,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let document = sealed.document.as_ref();
    let bytes = document.map(|(_, bytes)| bytes.as_slice());
    let format = document.map(|(format, _)| format.as_str());
    let qr_code = sealed.qr_code.as_deref();
    let sealed_at = (document.is_some() || qr_code.is_some()).then_some(now);
    let statement = sql(
        "UPDATE label_requests SET state = 'bought', updated_at = $3, detail = NULL, \
             undeliverable_since = NULL, tracking_number = $4, carrier = $5, service = $6, \
             label_url = $7, cost_cents = $8, currency = $9, expires_at = $10, expiry_due_at = $10, \
             document = $11, document_format = $12, qr_code = $13, sealed_at = $14 \
         WHERE merchant = $1 AND id = $2",
        (
            (request.merchant.as_str(), request.id, now),
            (&label.tracking_number, &label.carrier, &label.service, label.url()),
            (label.cost_cents, &label.currency, label.expires_at),
            (bytes, format, qr_code, sealed_at),
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records the label that a carrier reported.
pub(crate) async fn complete(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    tracking_number: &str,
    label_url: Option<&str>,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE label_requests SET state = 'bought', updated_at = $3, detail = NULL, \
             undeliverable_since = NULL, tracking_number = $4, label_url = $5 \
         WHERE merchant = $1 AND id = $2",
        (request.merchant.as_str(), request.id, now, tracking_number, label_url),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records that no label is possible.
pub(crate) async fn refuse(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    refusal: &LabelRefusal,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE label_requests SET state = 'refused', updated_at = $3, refusal = $4, detail = $5, \
             undeliverable_since = NULL \
         WHERE merchant = $1 AND id = $2",
        (request.merchant.as_str(), request.id, now, refusal.reason.as_str(), &refusal.detail),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records that the label is not needed any more, and the message that says so.
pub(crate) async fn cancel(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    cancellation: Uuid,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        format!(
            "UPDATE label_requests SET state = 'canceled', updated_at = $3, cancellation = $4, \
                 {UNSEALED} \
             WHERE merchant = $1 AND id = $2"
        ),
        (request.merchant.as_str(), request.id, now, cancellation),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

platform::rows! {
    struct DueRow {
        merchant: String,
        id: Uuid,
    }
}

/// Labels that have expired, and of which it is not known whether they were used; those that expired first.
pub(crate) async fn due_to_expire(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    most: i64,
) -> Result<Vec<(MerchantId, Uuid)>, DatabaseError> {
    let query = sql(
        "SELECT merchant, id FROM label_requests \
         WHERE state = 'bought' AND expiry_due_at <= $1 ORDER BY expiry_due_at LIMIT $2",
        (now, most),
    );
    let rows: Vec<DueRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(|row| Ok((row.merchant.parse().map_err(unreadable)?, row.id))).collect()
}

platform::rows! {
    struct ExpiredRow {
        id: Uuid,
        requests: i64,
    }
}

/// The newest request of each parcel of a return, if its label has expired, with the number of requests for the parcel.
pub(crate) async fn expired(
    conn: &mut AsyncPgConnection,
    (merchant, rma_identifier): ResourceKey<'_>,
) -> Result<Vec<(Uuid, usize)>, DatabaseError> {
    let query = sql(
        "SELECT id, requests FROM ( \
             SELECT id, state, row_number() OVER (PARTITION BY parcel ORDER BY id DESC) AS place, \
                 count(*) OVER (PARTITION BY parcel) AS requests \
             FROM label_requests WHERE rma_identifier = $2 AND (merchant = $1) IS TRUE \
         ) AS own WHERE place = 1 AND state = 'expired' ORDER BY id",
        (merchant, rma_identifier),
    );
    let rows: Vec<ExpiredRow> = prepared(query).load(conn).await?;
    let number = |requests: i64| usize::try_from(requests).unwrap_or(usize::MAX);
    Ok(rows.into_iter().map(|row| (row.id, number(row.requests))).collect())
}

/// Records that a label was used before it expired.
pub(crate) async fn keep(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE label_requests SET expiry_due_at = NULL WHERE merchant = $1 AND id = $2",
        (request.merchant.as_str(), request.id),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records that a label has expired.
pub(crate) async fn expire(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        format!(
            "UPDATE label_requests SET state = 'expired', updated_at = $3, {UNSEALED} \
             WHERE merchant = $1 AND id = $2"
        ),
        (request.merchant.as_str(), request.id, now),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Records that the message to the provider is dead.
pub(crate) async fn fail(
    conn: &mut AsyncPgConnection,
    request: &LabelRequest,
    detail: &str,
    now: Timestamp,
) -> Result<(), DatabaseError> {
    let statement = sql(
        "UPDATE label_requests SET updated_at = $3, detail = $4, \
             undeliverable_since = coalesce(undeliverable_since, $3) \
         WHERE merchant = $1 AND id = $2",
        (request.merchant.as_str(), request.id, now, detail),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
