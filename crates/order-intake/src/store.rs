//! Every query of this service.

mod refunds;

use std::borrow::Cow;

use diesel::QueryableByName;
use diesel::result::DatabaseErrorKind;
use diesel::sql_types::{Array, BigInt, Binary, Integer, Nullable, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::MerchantId;
use domain::json::Digest;
use domain::order::{KnownOrder, KnownRefund, OrderStatus};
use messaging::{Outbox, SqlStatement};
use platform::Timestamp;
use platform::database::{DatabaseError, is_truncated, limit_page_bytes, prepared};
use serde_json::value::RawValue;

use self::refunds::RefundRows;
use crate::orders::StoredOrder;
use crate::write_batch::{Key, Row, Stored, WriteBatch};

/// Joins the line identifiers of an order in one parameter, which the statement splits again.
const SEPARATOR: &str = "\u{1f}";
/// Replaces the separator in a line identifier.
const SEPARATOR_SIGN: &str = "\u{241f}";
/// Key of the advisory lock, the same in every replica.
const RETRY_LOCK: i64 = 0x6F72_6465_7273;

/// The reason why a batch was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("another writer changed these orders or refunds")]
    Conflict,
}

impl From<diesel::result::Error> for WriteError {
    fn from(error: diesel::result::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The kind of a [`KnownRow`].
const ORDER: i32 = 1;
const REFUND: i32 = 2;
const REFUND_LINE: i32 = 3;

#[derive(QueryableByName)]
struct KnownRow {
    #[diesel(sql_type = Integer)]
    kind: i32,
    #[diesel(sql_type = BigInt)]
    position: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    updated_at: Option<Timestamp>,
    #[diesel(sql_type = Nullable<Binary>)]
    digest: Option<Vec<u8>>,
    /// The order of a refund, or the refund of a line.
    #[diesel(sql_type = Nullable<Binary>)]
    owner: Option<Vec<u8>>,
}

/// Loads the stored state of orders, refunds and refund lines in one query.
pub(crate) async fn known<'a>(
    mut conn: &AsyncPgConnection,
    orders: &[Key<'a>],
    refunds: &[Key<'a>],
    refund_lines: &[Key<'a>],
) -> Result<Stored<'a>, DatabaseError> {
    let mut query = diesel::sql_query(format!(
        "SELECT {ORDER} AS kind, position, updated_at, digest, NULL AS owner \
         FROM unnest($1, $2) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL ( \
             SELECT updated_at, digest FROM orders \
             WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1 \
         ) AS orders \
         UNION ALL \
         SELECT {REFUND}, position, NULL, digest, order_digest \
         FROM unnest($3, $4) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL ( \
             SELECT order_digest, digest FROM refunds \
             WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1 \
         ) AS refunds \
         UNION ALL \
         SELECT {REFUND_LINE}, position, NULL, NULL, refund_digest \
         FROM unnest($5, $6) WITH ORDINALITY AS requested (merchant, identifier, position), LATERAL ( \
             SELECT refund_digest FROM refund_lines \
             WHERE merchant = requested.merchant AND identifier = requested.identifier LIMIT 1 \
         ) AS refund_lines",
    ))
    .into_boxed();
    for keys in [orders, refunds, refund_lines] {
        let (merchants, identifiers): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
        query = query.bind::<Array<Text>, _>(merchants).bind::<Array<Text>, _>(identifiers);
    }
    let mut stored = Stored::default();
    for row in prepared(query).load::<KnownRow>(&mut conn).await? {
        let digest = |bytes: Option<Vec<u8>>| {
            bytes.as_deref().map(Digest::try_from).transpose().map_err(unreadable)
        };
        match (row.kind, row.updated_at, digest(row.digest)?, digest(row.owner)?) {
            (ORDER, Some(updated_at), Some(digest), _) => {
                let key = at(orders, row.position);
                stored.orders.extend(key.map(|key| (key, KnownOrder { updated_at, digest })));
            }
            (REFUND, _, Some(digest), Some(order)) => {
                let key = at(refunds, row.position);
                stored.refunds.extend(key.map(|key| (key, KnownRefund { order, digest })));
            }
            (_, _, _, Some(refund)) => {
                stored.refund_lines.extend(at(refund_lines, row.position).map(|key| (key, refund)));
            }
            _ => {}
        }
    }
    Ok(stored)
}

/// Serializes retries after a conflict: holds an advisory lock until the end of the transaction.
pub(crate) async fn serialize_retries(conn: &mut AsyncPgConnection) -> Result<(), DatabaseError> {
    let lock = diesel::sql_query("SELECT pg_advisory_xact_lock($1)");
    lock.bind::<BigInt, _>(RETRY_LOCK).execute(conn).await?;
    Ok(())
}

/// The condition on which a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Nothing was loaded. The statement first checks that every order is new or newer.
    Optimistic,
    /// The batch was decided on loaded rows, which must not have changed.
    Checked,
}

/// Writes the batch and appends its events to the outbox, in one statement. Outside a transaction the
/// statement is atomic by itself.
///
/// Nothing is written if the precondition does not hold: the statement inserts no event. If the
/// precondition held and another writer then changed the same rows first, some of the rows may be
/// written already, so the statement aborts itself with a serialization failure. Both are
/// [`WriteError::Conflict`].
///
/// The condition of the outbox insert counts the written orders, and so waits for concurrent writers
/// of the same orders, before the events draw their sequence numbers. The events of an order are
/// numbered in the order in which its snapshots were stored.
pub(crate) async fn write(
    mut conn: &AsyncPgConnection,
    outbox: &Outbox,
    batch: &WriteBatch<'_>,
    mode: WriteMode,
    now: Timestamp,
) -> Result<(), WriteError> {
    let rows = batch.rows();
    let refund_rows = RefundRows::of(batch);
    if rows.len() == 0 && refund_rows.is_empty() {
        return Ok(());
    }
    let mut columns = OrderColumns::default();
    rows.for_each(|(key, row)| columns.push(key, &row));
    let (with, condition) = write_sql(mode, !refund_rows.is_empty());
    let events = batch.events();
    let statement = outbox.append_to_sql(&with, &condition, now, events.iter().copied());
    let mut statement = columns.bind(statement);
    if !refund_rows.is_empty() {
        statement = refund_rows.bind(statement);
    }
    match prepared(statement).execute(&mut conn).await {
        Ok(inserted) if inserted == events.len() => {
            outbox.wake_relay();
            Ok(())
        }
        Ok(_) => Err(WriteError::Conflict),
        Err(diesel::result::Error::DatabaseError(DatabaseErrorKind::SerializationFailure, _)) => {
            Err(WriteError::Conflict)
        }
        Err(error) => Err(error.into()),
    }
}

/// The `WITH` clause that writes the batch, and the condition on which the events are inserted.
///
/// Parameters: `$1` to `$4` belong to [`Outbox::append_to_sql`], `$5` to `$17` to
/// [`OrderColumns::bind`], `$18` to `$25` to [`RefundRows::bind`].
fn write_sql(mode: WriteMode, has_refunds: bool) -> (String, String) {
    let (mut precondition, replaceable) = match mode {
        WriteMode::Optimistic => (ORDERS_ARE_NEWER.to_owned(), REPLACES_OLDER),
        WriteMode::Checked => ("true".to_owned(), REPLACES_READ),
    };
    let mut complete = ORDERS_COMPLETE.to_owned();
    let mut insert_refunds = "";
    if has_refunds {
        if mode == WriteMode::Optimistic {
            precondition = format!("{precondition} AND {}", refunds::REFUNDS_UNCHANGED);
        }
        complete = format!("{complete} AND {}", refunds::complete(mode));
        insert_refunds = refunds::INSERT_REFUNDS;
    }
    let with = format!(
        "WITH precondition AS MATERIALIZED (SELECT {precondition} AS holds), \
         stored AS ({UPSERT_ORDERS} WHERE {replaceable} RETURNING 1){insert_refunds}"
    );
    let condition = format!(
        "CASE WHEN NOT (SELECT holds FROM precondition) THEN false \
              WHEN {complete} THEN true \
              ELSE abort_concurrent_write() END"
    );
    (with, condition)
}

/// No order is stored with a later `updated_at` or the same digest.
const ORDERS_ARE_NEWER: &str = "NOT EXISTS ( \
         SELECT FROM unnest($5, $6, $11, $12) AS new (merchant, identifier, updated_at, digest), \
         LATERAL ( \
             SELECT FROM orders \
             WHERE merchant = new.merchant AND identifier = new.identifier \
                 AND (updated_at > new.updated_at OR digest = new.digest) LIMIT 1 \
         ) AS newer_or_same \
     )";
const UPSERT_ORDERS: &str = "INSERT INTO orders (merchant, identifier, status, customer_email, \
         line_identifiers, created_at, updated_at, digest, document, received_at) \
     SELECT merchant, identifier, status, customer_email, string_to_array(lines, $17), \
         created_at, updated_at, digest, document, received_at \
     FROM unnest($5, $6, $7, $8, $9, $10, $11, $12, $13, $14) AS new (merchant, identifier, \
         status, customer_email, lines, created_at, updated_at, digest, document, received_at) \
     WHERE (SELECT holds FROM precondition) \
     ON CONFLICT ON CONSTRAINT orders_pkey DO UPDATE SET \
         status = excluded.status, customer_email = excluded.customer_email, \
         line_identifiers = excluded.line_identifiers, created_at = excluded.created_at, \
         updated_at = excluded.updated_at, digest = excluded.digest, \
         document = excluded.document, received_at = excluded.received_at";
/// Rows that an upsert may overwrite.
const REPLACES_OLDER: &str =
    "orders.updated_at <= excluded.updated_at AND orders.digest <> excluded.digest";
const REPLACES_READ: &str = "(orders.merchant, orders.digest) IN (SELECT * FROM unnest($15, $16))";
/// Every order was written.
const ORDERS_COMPLETE: &str = "(SELECT count(*) FROM stored) = cardinality($5)";

#[derive(Default)]
struct OrderColumns<'a> {
    merchants: Vec<&'a str>,
    identifiers: Vec<&'a str>,
    statuses: Vec<&'static str>,
    emails: Vec<Option<String>>,
    lines: Vec<String>,
    created_at: Vec<Timestamp>,
    updated_at: Vec<Timestamp>,
    digests: Vec<&'a [u8]>,
    documents: Vec<&'a str>,
    received_at: Vec<Timestamp>,
    /// Merchants and digests of the loaded rows. A digest identifies the order, because it covers the
    /// order's identifier.
    owners: Vec<&'a str>,
    replaced: Vec<Vec<u8>>,
}

impl<'a> OrderColumns<'a> {
    fn push(&mut self, (merchant, identifier): Key<'a>, row: &Row<'a>) {
        let Row { published, received_at, replaces } = row;
        let order = &published.snapshot.order;
        let lines: Vec<_> = order.items.iter().map(|line| searchable(&line.identifier)).collect();
        self.merchants.push(merchant);
        self.identifiers.push(identifier);
        self.statuses.push(match order.status {
            OrderStatus::Created => "Created",
            OrderStatus::Shipped => "Shipped",
            OrderStatus::Cancelled => "Cancelled",
        });
        self.emails.push(order.customer.email_address().map(str::to_lowercase));
        self.lines.push(lines.join(SEPARATOR));
        self.created_at.push(order.created_at);
        self.updated_at.push(order.updated_at);
        self.digests.push(published.snapshot.digest.as_bytes());
        self.documents.push(&published.document);
        self.received_at.push(*received_at);
        self.owners.extend(replaces.map(|_| merchant));
        self.replaced.extend(replaces.map(|digest| digest.as_bytes().to_vec()));
    }

    /// Binds `$5` to `$17`.
    fn bind(self, statement: SqlStatement<'a>) -> SqlStatement<'a> {
        statement
            .bind::<Array<Text>, _>(self.merchants)
            .bind::<Array<Text>, _>(self.identifiers)
            .bind::<Array<Text>, _>(self.statuses)
            .bind::<Array<Nullable<Text>>, _>(self.emails)
            .bind::<Array<Text>, _>(self.lines)
            .bind::<Array<Timestamptz>, _>(self.created_at)
            .bind::<Array<Timestamptz>, _>(self.updated_at)
            .bind::<Array<Binary>, _>(self.digests)
            .bind::<Array<Text>, _>(self.documents)
            .bind::<Array<Timestamptz>, _>(self.received_at)
            .bind::<Array<Text>, _>(self.owners)
            .bind::<Array<Binary>, _>(self.replaced)
            .bind::<Text, _>(SEPARATOR)
    }
}

/// Filters of a search. `None` matches every order.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) identifier: Option<String>,
    /// In lower case.
    pub(crate) customer_email: Option<String>,
    pub(crate) line_identifier: Option<String>,
    /// Only orders whose identifier sorts after this.
    pub(crate) after: Option<String>,
}

#[derive(QueryableByName)]
struct FoundRow {
    #[diesel(sql_type = Text)]
    identifier: String,
    #[diesel(sql_type = Text)]
    status: String,
    #[diesel(sql_type = Timestamptz)]
    created_at: Timestamp,
    #[diesel(sql_type = Timestamptz)]
    updated_at: Timestamp,
    #[diesel(sql_type = Timestamptz)]
    received_at: Timestamp,
    #[diesel(sql_type = Text)]
    document: String,
    #[diesel(sql_type = BigInt)]
    found: i64,
}

/// Finds a merchant's orders, sorted by identifier, at most `limit`. The flag is true when the page was
/// truncated because its orders are large.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    search: &Search,
    limit: i64,
) -> Result<(Vec<StoredOrder>, bool), DatabaseError> {
    let line_identifier = search.line_identifier.as_deref().map(searchable);
    let (prefix, suffix) = limit_page_bytes("identifier");
    let mut query = diesel::sql_query(format!(
        "{prefix}SELECT identifier, status, created_at, updated_at, received_at, document, \
             octet_length(document) AS weight \
         FROM orders WHERE merchant = $1"
    ))
    .into_boxed()
    .bind::<Text, _>(merchant.as_str());
    let mut bound = 1;
    // Unused filters are left out of the query, so that PostgreSQL can choose the right index.
    let conditions = [
        (search.identifier.as_deref(), "identifier = "),
        (search.customer_email.as_deref(), "customer_email = "),
        (line_identifier.as_deref(), "line_identifiers @> ARRAY["),
        (search.after.as_deref(), "identifier > "),
    ];
    for (value, condition) in conditions {
        let Some(value) = value else { continue };
        bound += 1;
        let closing = if condition.ends_with('[') { "]" } else { "" };
        query = query.sql(format!(" AND {condition}${bound}{closing}")).bind::<Text, _>(value);
    }
    let page = format!(" ORDER BY identifier LIMIT ${}{suffix}", bound + 1);
    query = query.sql(page).bind::<BigInt, _>(limit);
    let rows: Vec<FoundRow> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    let orders: Result<_, _> = rows.into_iter().map(StoredOrder::try_from).collect();
    Ok((orders.map_err(unreadable)?, is_truncated))
}

impl TryFrom<FoundRow> for StoredOrder {
    type Error = serde_json::Error;

    fn try_from(row: FoundRow) -> Result<Self, serde_json::Error> {
        let FoundRow { identifier, status, created_at, updated_at, received_at, document, .. } =
            row;
        let document = RawValue::from_string(document)?;
        Ok(Self { identifier, status, created_at, updated_at, received_at, document })
    }
}

/// The line identifier as the index stores it.
fn searchable(identifier: &str) -> Cow<'_, str> {
    if identifier.contains(SEPARATOR) {
        identifier.replace(SEPARATOR, SEPARATOR_SIGN).into()
    } else {
        identifier.into()
    }
}

fn at<T: Copy>(keys: &[T], position: i64) -> Option<T> {
    keys.get(usize::try_from(position).ok()?.checked_sub(1)?).copied()
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> diesel::result::Error {
    diesel::result::Error::DeserializationError(error.into())
}
