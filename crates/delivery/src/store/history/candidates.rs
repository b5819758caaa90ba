//! The deliveries that an index offers for a filter, before all conditions are checked.

use api::delivery::{Filter, State};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use platform::database::{DatabaseError, Each, sql};
use uuid::Uuid;

use super::search::{IdOrder, ordering_keys, text_id};
use crate::store::ordering_key::messages_of_key;

/// The index whose entries are read in the order of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Messages,
    Failed,
    /// Attempts after which a delivery was dead.
    Dead,
    /// Deliveries that are not settled.
    Unsettled,
}

/// The parts of a statement that reads a source.
struct SourceSql {
    table: &'static str,
    /// Column with the id of the delivery.
    id: &'static str,
    condition: &'static str,
}

impl Source {
    fn sql(self) -> SourceSql {
        match self {
            Self::Messages => SourceSql { table: "delivery_messages", id: "id", condition: "true" },
            Self::Failed => SourceSql {
                table: "delivery_attempts",
                id: "delivery",
                condition: "outcome <> 'delivered'",
            },
            Self::Dead => SourceSql {
                table: "delivery_attempts",
                id: "delivery",
                condition: "settled = 'dead'",
            },
            Self::Unsettled => SourceSql { table: "deliveries", id: "id", condition: "true" },
        }
    }
}

platform::rows! { struct Candidate { id: Uuid } }

fn ids(candidates: Vec<Candidate>) -> Vec<Uuid> {
    candidates.into_iter().map(|candidate| candidate.id).collect()
}

fn source(filter: &Filter) -> Source {
    let is_failure = |status: u16| !(200..300).contains(&status);
    let has_failed = filter.status.is_some_and(is_failure)
        || filter.outcome.as_deref().is_some_and(|outcome| outcome != "delivered");
    match filter.state {
        Some(State::Dead) => Source::Dead,
        _ if has_failed => Source::Failed,
        // The deliveries of one merchant have no index in the order of ids.
        Some(State::Pending) if filter.merchant.is_none() => Source::Unsettled,
        _ => Source::Messages,
    }
}

/// Returns up to `limit` entries of the filter's index with ids from the first of `range`, up to but without
/// the second. A delivery can occur several times in a row.
pub(super) async fn candidates(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    order: IdOrder,
    (from, to): (Uuid, Uuid),
    limit: i64,
) -> Result<Vec<Uuid>, DatabaseError> {
    let source = source(filter);
    let SourceSql { table, id, condition } = source.sql();
    // `IS DISTINCT FROM` is the condition of the index of messages, and of the indexes of attempts of all
    // merchants.
    let of_merchants = match (&filter.merchant, source) {
        (Some(_), Source::Messages) => "merchant = $4 AND merchant IS DISTINCT FROM ''",
        (Some(_), _) => "merchant = $4",
        (None, Source::Failed | Source::Dead) => "merchant IS DISTINCT FROM ''",
        (None, _) => "true",
    };
    let direction = match order {
        IdOrder::NewestFirst => "DESC",
        IdOrder::OldestFirst => "ASC",
    };
    let text = format!(
        "SELECT {id} AS id FROM {table} WHERE {condition} AND {of_merchants} \
         AND {id} >= $1 AND {id} < $2 ORDER BY {id} {direction} LIMIT $3"
    );
    let query = sql(text, (from, to, limit, Each(filter.merchant.as_deref())));
    Ok(ids(query.load(conn).await?))
}

/// Returns all deliveries that have the ordering key, or that a merchant has pending, if they are at most
/// `limit`, oldest first. Their indexes are not in the order of ids. `None` means that there are more, or that
/// the filter has neither condition.
pub(super) async fn small_set(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    limit: usize,
) -> Result<Option<Vec<Uuid>>, DatabaseError> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut found = if let Some(keys) = ordering_keys(filter) {
        of_ordering_keys(conn, filter, &keys, most).await?
    } else if filter.state == Some(State::Pending) && filter.merchant.is_some() {
        unsettled_of_merchant(conn, filter, most).await?
    } else {
        return Ok(None);
    };
    found.sort();
    found.dedup();
    Ok((found.len() <= limit).then_some(found))
}

async fn of_ordering_keys(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    keys: &[String],
    limit: i64,
) -> Result<Vec<Uuid>, DatabaseError> {
    let of_merchant = filter.merchant.as_ref().map_or("", |_| "AND merchant = $4 ");
    let text = format!(
        "SELECT id FROM ( \
             SELECT message.id FROM unnest($1) AS wanted (ordering_key), LATERAL ({}) AS message \
             UNION ALL SELECT $3 WHERE $3 IS NOT NULL \
         ) AS found LIMIT $2",
        messages_of_key("id", &format!("{of_merchant}LIMIT $2"))
    );
    let query = sql(text, (keys, limit, text_id(filter), Each(filter.merchant.as_deref())));
    Ok(ids(query.load(conn).await?))
}

/// Each state has an index of its own.
const UNSETTLED_OF_MERCHANT: &str = include_str!("unsettled_of_merchant.sql");

async fn unsettled_of_merchant(
    conn: &mut AsyncPgConnection,
    filter: &Filter,
    limit: i64,
) -> Result<Vec<Uuid>, DatabaseError> {
    let query = sql(UNSETTLED_OF_MERCHANT, (limit, Each(filter.merchant.as_deref())));
    Ok(ids(query.load(conn).await?))
}
