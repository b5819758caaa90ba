//! Age of the oldest due delivery.

use std::collections::{HashMap, HashSet};

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::message_kind::MessageKind;
use platform::{
    Timestamp,
    database::{DatabaseError, Each, sql},
};

platform::rows! {
    /// A delivery that has been due for the longest time, of all or of its endpoint.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub(crate) struct OldestDue {
        pub(crate) merchant: String,
        pub(crate) kind: String,
        pub(crate) due_at: Timestamp,
    }
}

/// The oldest due delivery of each of the first 2,000 endpoints, and the 1,000 oldest of all. The index skips
/// from endpoint to endpoint, so a long backlog of one costs nothing. With more endpoints than that, a due
/// delivery is missed only while 1,000 older ones wait for paused endpoints.
const OF_ALL: &str = include_str!("oldest_due_of_all.sql");
const OF_MERCHANT: &str = include_str!("oldest_due_of_merchant.sql");

/// Returns the oldest due deliveries of endpoints that are not paused.
async fn oldest_of_endpoints(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    merchant: Option<&str>,
    (paused_merchants, paused_kinds): (&[String], &[String]),
) -> Result<Vec<OldestDue>, DatabaseError> {
    let kinds = || MessageKind::ALL.map(MessageKind::name).to_vec();
    let of_merchant = Each(merchant.map(|merchant| (merchant, kinds())));
    let query = sql(merchant.map_or(OF_ALL, |_| OF_MERCHANT), (now, of_merchant));
    let mut oldest: Vec<OldestDue> = query.load(conn).await?;
    let paused: HashSet<_> = paused_merchants.iter().zip(paused_kinds).collect();
    oldest.retain(|due| !paused.contains(&(&due.merchant, &due.kind)));
    Ok(oldest)
}

/// Returns the oldest due delivery of one merchant or of all. Deliveries to paused endpoints do not count.
pub(crate) async fn oldest_due(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    merchant: Option<&str>,
    paused: (&[String], &[String]),
) -> Result<Option<OldestDue>, DatabaseError> {
    let oldest = oldest_of_endpoints(conn, now, merchant, paused).await?;
    Ok(oldest.into_iter().min_by_key(|due| due.due_at))
}

/// Returns for each kind how long its oldest ready delivery has been due. Deliveries to paused endpoints do
/// not count.
pub(crate) async fn oldest_due_seconds(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    paused: (&[String], &[String]),
) -> Result<HashMap<String, f64>, DatabaseError> {
    let mut ages = HashMap::new();
    for due in oldest_of_endpoints(conn, now, None, paused).await? {
        let seconds = (now - due.due_at).as_seconds_f64();
        let age = ages.entry(due.kind).or_insert(seconds);
        *age = seconds.max(*age);
    }
    Ok(ages)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use diesel_async::SimpleAsyncConnection;

    use super::*;

    #[tokio::test]
    async fn deliveries_to_paused_endpoints_are_not_overdue() {
        let database = testkit::Database::create(vec![crate::MIGRATIONS]).await;
        let mut conn = database.pool().get().await.unwrap();
        conn.batch_execute(
            "INSERT INTO deliveries \
             (id, merchant, kind, sequence, state, next_attempt_at, leased_until) \
             SELECT gen_random_uuid(), merchant, kind, 1, state, to_timestamp(seconds), \
             CASE state WHEN 'queued' THEN now() END \
             FROM (VALUES ('paused', 'rma', 'ready', 100), \
             ('open', 'rma', 'ready', 900), ('open', 'rma', 'queued', 300), \
             ('paused', 'exchange-order', 'ready', 800), \
             ('open', 'outbound-asn', 'blocked', 100)) \
             AS row (merchant, kind, state, seconds)",
        )
        .await
        .unwrap();
        let now = Timestamp::UNIX_EPOCH + TimeDelta::seconds(1000);
        let paused = (&["paused".to_owned()][..], &["rma".to_owned()][..]);
        let oldest = oldest_due_seconds(&mut conn, now, paused).await.unwrap();
        let expected = [("rma".to_owned(), 100.0), ("exchange-order".to_owned(), 200.0)];
        assert_eq!(oldest, HashMap::from(expected));
        let seconds = |seconds| Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let mut due = async |merchant: Option<&str>, now| {
            let found = oldest_due(&mut conn, now, merchant, paused).await.unwrap();
            found.map(|it| (it.merchant, it.kind, it.due_at))
        };
        let expected = ("paused".to_owned(), "exchange-order".to_owned(), seconds(800));
        assert_eq!(due(None, now).await, Some(expected));
        let expected = ("open".to_owned(), "rma".to_owned(), seconds(900));
        assert_eq!(due(Some("open"), now).await, Some(expected));
        assert_eq!(due(None, seconds(500)).await, None);
    }
}
