//! The orders that merchants sent, and the summary of a merchant's orders.

use api::orders::{RejectedOrder, TimeSpan};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl as _};
use domain::access::MerchantId;
use platform::Timestamp;
use platform::database::{DatabaseError, prepared, sql};

use super::error::unreadable;
use crate::merchant_activity::{MAX_REJECTED, MerchantActivity, OrderCounts, OrderTimes};

/// Adds the activity of a merchant.
pub(crate) async fn add_activity(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    activity: &MerchantActivity,
) -> Result<(), DatabaseError> {
    conn.transaction(async |conn| {
        add_counts(conn, merchant, activity).await?;
        if let Some(times) = activity.times {
            add_times(conn, merchant, times).await?;
        }
        if !activity.rejected.is_empty() {
            add_rejected(conn, merchant, &activity.rejected).await?;
        }
        Ok(())
    })
    .await
}

/// Adds counts, and deletes those of the day before yesterday. The hours are those of this process, whose clock may
/// be ahead, so the database's clock limits the deletion.
async fn add_counts(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    activity: &MerchantActivity,
) -> Result<(), DatabaseError> {
    let hours: Vec<_> = activity.hours.keys().copied().collect();
    let counts = |count: fn(&OrderCounts) -> i64| -> Vec<i64> {
        activity.hours.values().map(count).collect()
    };
    let statement = sql(
        include_str!("add_activity_counts.sql"),
        (
            merchant.as_str(),
            hours,
            counts(|counts| counts.received),
            counts(|counts| counts.changed),
            counts(|counts| counts.rejected),
        ),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

async fn add_times(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    OrderTimes { created, received }: OrderTimes,
) -> Result<(), DatabaseError> {
    let statement = sql(
        include_str!("add_activity_times.sql"),
        (merchant.as_str(), created.oldest, created.newest, received.oldest, received.newest),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

/// Adds rejected orders, and deletes all but the last [`MAX_REJECTED`].
async fn add_rejected(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rejected: &[RejectedOrder],
) -> Result<(), DatabaseError> {
    let documents: Result<Vec<_>, _> = rejected.iter().map(serde_json::to_string).collect();
    let documents =
        documents.map_err(|error| diesel::result::Error::SerializationError(error.into()))?;
    let statement = sql(
        "INSERT INTO rejected_orders (merchant, document) SELECT $1, * FROM unnest($2)",
        (merchant.as_str(), documents),
    );
    prepared(statement).execute(conn).await?;
    let statement = sql(
        "DELETE FROM rejected_orders WHERE merchant = $1 AND id <= ( \
             SELECT id FROM rejected_orders WHERE merchant = $1 ORDER BY id DESC OFFSET $2 LIMIT 1 \
         )",
        (merchant.as_str(), i64::try_from(MAX_REJECTED).unwrap_or(i64::MAX)),
    );
    prepared(statement).execute(conn).await?;
    Ok(())
}

platform::rows! { struct CountRow { count: i64 } }

/// The number of a merchant's orders, counted up to `limit`.
pub(crate) async fn count_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    limit: i64,
) -> Result<i64, DatabaseError> {
    let query = sql(
        "SELECT count(*) AS count FROM (SELECT FROM orders WHERE merchant = $1 LIMIT $2) AS counted",
        (merchant.as_str(), limit),
    );
    let CountRow { count } = prepared(query).get_result(conn).await?;
    Ok(count)
}

platform::rows! {
    struct TimesRow {
        oldest_created_at: Timestamp,
        newest_created_at: Timestamp,
        first_received_at: Timestamp,
        last_received_at: Timestamp,
    }
}

/// The times of a merchant's orders, if there are any.
pub(crate) async fn order_times(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
) -> Result<Option<OrderTimes>, DatabaseError> {
    let query = sql(
        "SELECT oldest_created_at, newest_created_at, first_received_at, last_received_at \
         FROM order_times WHERE merchant = $1",
        merchant.as_str(),
    );
    let rows: Vec<TimesRow> = prepared(query).load(conn).await?;
    Ok(rows.into_iter().next().map(|row| OrderTimes {
        created: TimeSpan { oldest: row.oldest_created_at, newest: row.newest_created_at },
        received: TimeSpan { oldest: row.first_received_at, newest: row.last_received_at },
    }))
}

platform::rows! {
    struct CountsRow {
        received: i64,
        changed: i64,
        rejected: i64,
    }
}

/// The numbers of orders that a merchant sent since a full hour.
pub(crate) async fn counts_since(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    since: Timestamp,
) -> Result<OrderCounts, DatabaseError> {
    let query = sql(
        "SELECT coalesce(sum(received), 0)::bigint AS received, \
             coalesce(sum(changed), 0)::bigint AS changed, \
             coalesce(sum(rejected), 0)::bigint AS rejected \
         FROM order_counts WHERE merchant = $1 AND hour >= $2",
        (merchant.as_str(), since),
    );
    let CountsRow { received, changed, rejected } = prepared(query).get_result(conn).await?;
    Ok(OrderCounts { received, changed, rejected })
}

platform::rows! { struct RejectedRow { document: String } }

/// The last rejected orders of a merchant, newest first.
pub(crate) async fn rejected_orders(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
) -> Result<Vec<RejectedOrder>, DatabaseError> {
    let query = sql(
        "SELECT document FROM rejected_orders WHERE merchant = $1 ORDER BY id DESC LIMIT $2",
        (merchant.as_str(), i64::try_from(MAX_REJECTED).unwrap_or(i64::MAX)),
    );
    let rows: Vec<RejectedRow> = prepared(query).load(conn).await?;
    let orders: Result<_, _> = rows.iter().map(|row| serde_json::from_str(&row.document)).collect();
    Ok(orders.map_err(unreadable)?)
}
