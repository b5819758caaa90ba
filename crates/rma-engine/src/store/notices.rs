//! Facts about endpoints that their merchants have not been told yet, and the time of the last notice.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use domain::merchant::Interface;
use domain::notice::{NoticeEvent, NoticeFacts};
use platform::Timestamp;
use platform::database::{DatabaseError, column, prepared, sql};

use super::{read, unreadable, write};

/// An event of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NoticeKey {
    pub(crate) merchant: MerchantId,
    pub(crate) interface: Interface,
    pub(crate) event: NoticeEvent,
}

impl NoticeKey {
    /// The event of the same endpoint that this one takes back.
    pub(crate) fn opposite(&self) -> Option<Self> {
        Some(Self { event: self.event.opposite()?, ..self.clone() })
    }
}

/// Facts that a merchant has not been told yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) facts: NoticeFacts,
    /// The time at which the merchant is told.
    pub(crate) due_at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredNotice {
    pub(crate) key: NoticeKey,
    pub(crate) pending: Option<Pending>,
    /// The time of the last notice.
    pub(crate) told_at: Option<Timestamp>,
}

platform::rows! {
    struct NoticeRow {
        merchant: String,
        interface: String,
        event: String,
        facts: Option<String>,
        due_at: Option<Timestamp>,
        told_at: Option<Timestamp>,
    }
}

impl NoticeRow {
    fn read(self) -> Result<StoredNotice, DatabaseError> {
        let key = NoticeKey {
            merchant: self.merchant.parse().map_err(unreadable)?,
            interface: self.interface.parse().map_err(unreadable)?,
            event: self.event.parse().map_err(unreadable)?,
        };
        let pending = match (self.facts, self.due_at) {
            (Some(facts), Some(due_at)) => Some(Pending { facts: read(&facts)?, due_at }),
            _ => None,
        };
        Ok(StoredNotice { key, pending, told_at: self.told_at })
    }
}

/// Creates the rows of these events if they do not exist, and locks them. Transactions lock them in the order of the
/// keys.
pub(crate) async fn lock(
    conn: &mut AsyncPgConnection,
    keys: &[&NoticeKey],
) -> Result<Vec<StoredNotice>, DatabaseError> {
    let statement = sql(
        "INSERT INTO notices (merchant, interface, event) \
         SELECT * FROM unnest((SELECT $1), $2, $3) \
         ON CONFLICT ON CONSTRAINT notices_pkey DO UPDATE SET event = excluded.event \
         RETURNING merchant, interface, event, facts, due_at, told_at",
        (
            column(keys, |key| key.merchant.as_str()),
            column(keys, |key| key.interface.name()),
            column(keys, |key| key.event.as_str()),
        ),
    );
    let rows: Vec<NoticeRow> = prepared(statement).load(conn).await?;
    rows.into_iter().map(NoticeRow::read).collect()
}

/// Locks the notices that are due, up to `most`. Those that another transaction has locked are told by it, or get
/// further facts.
pub(crate) async fn lock_due(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    most: i64,
) -> Result<Vec<StoredNotice>, DatabaseError> {
    let query = sql(
        "SELECT merchant, interface, event, facts, due_at, told_at FROM notices \
         WHERE due_at <= $1 ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED",
        (now, most),
    );
    let rows: Vec<NoticeRow> = prepared(query).load(conn).await?;
    rows.into_iter().map(NoticeRow::read).collect()
}

/// Saves notices that are locked.
pub(crate) async fn save(
    conn: &mut AsyncPgConnection,
    notices: &[StoredNotice],
) -> Result<(), DatabaseError> {
    let facts = notices.iter().map(|notice| {
        let pending = notice.pending.as_ref();
        pending.map(|pending| write(&pending.facts)).transpose()
    });
    let facts = facts.collect::<Result<Vec<_>, _>>()?;
    let statement = sql(
        include_str!("save_notices.sql"),
        (
            column(notices, |notice| notice.key.merchant.as_str()),
            column(notices, |notice| notice.key.interface.name()),
            column(notices, |notice| notice.key.event.as_str()),
            facts,
            column(notices, |notice| notice.pending.as_ref().map(|pending| pending.due_at)),
            column(notices, |notice| notice.told_at),
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}
