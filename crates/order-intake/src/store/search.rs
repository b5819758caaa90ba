//! Finds stored orders.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Text, Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::{InvalidMerchantId, MerchantId};
use platform::Timestamp;
use platform::database::{DatabaseError, is_truncated, limit_page_bytes, prepared};
use serde_json::value::RawValue;

use super::error::unreadable;
use super::line_identifiers::searchable;
use crate::stored_order::{OrderKey, StoredOrder};

/// Filters of a search. `None` matches every order.
#[derive(Debug, Default)]
pub(crate) struct Search {
    pub(crate) merchant: Option<MerchantId>,
    pub(crate) identifier: Option<String>,
    pub(crate) identifier_prefix: Option<String>,
    /// In lower case.
    pub(crate) customer_email: Option<String>,
    pub(crate) line_identifier: Option<String>,
    /// Sort by creation time, newest first. Only for all orders of one merchant: other filters have no
    /// index with this order.
    pub(crate) newest_first: bool,
    /// Only orders that are sorted after this one.
    pub(crate) after: Option<OrderKey>,
}

/// The orders of a merchant that are older than one of its orders.
const AFTER_OLDER: &str = "(created_at, identifier) < \
    ((SELECT created_at FROM orders WHERE merchant = ? AND identifier = ?), ?)";

/// A condition in SQL with a `?` for each of its values.
type Condition = (&'static str, Vec<String>);

impl Search {
    /// The columns that sort the orders. An index has the orders of every search in this order.
    fn sort_columns(&self) -> &'static str {
        if self.newest_first {
            "created_at DESC, identifier DESC"
        } else if self.is_by_identifier_first() {
            "identifier, merchant"
        } else {
            "merchant, identifier"
        }
    }

    fn is_by_identifier_first(&self) -> bool {
        self.merchant.is_none() && self.identifier_prefix.is_some()
    }

    /// The conditions of the filters that are used. PostgreSQL could not choose the right index if the
    /// query had the others too.
    fn conditions(&self) -> Vec<Condition> {
        let prefix = self.identifier_prefix.as_deref();
        let filters = [
            ("merchant = ?", self.merchant.as_ref().map(ToString::to_string)),
            ("identifier = ?", self.identifier.clone()),
            ("identifier >= ?", prefix.map(str::to_owned)),
            ("identifier < ?", prefix.and_then(prefix_end)),
            ("customer_email = ?", self.customer_email.clone()),
            (
                "line_identifiers @> ARRAY[?]",
                self.line_identifier.as_deref().map(|it| searchable(it).into_owned()),
            ),
        ];
        let used = filters.into_iter().filter_map(|(sql, value)| Some((sql, vec![value?])));
        let after = self.after.as_ref().map(|OrderKey { merchant, identifier }| {
            let (merchant, identifier) = (merchant.to_string(), identifier.clone());
            if self.newest_first {
                (AFTER_OLDER, vec![merchant, identifier.clone(), identifier])
            } else if self.is_by_identifier_first() {
                ("(identifier, merchant) > (?, ?)", vec![identifier, merchant])
            } else {
                ("(merchant, identifier) > (?, ?)", vec![merchant, identifier])
            }
        });
        used.chain(after).collect()
    }
}

/// The first text that is sorted after all texts with this prefix, if there is one.
fn prefix_end(prefix: &str) -> Option<String> {
    let mut chars: Vec<_> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[derive(QueryableByName)]
struct FoundRow {
    #[diesel(sql_type = Text)]
    merchant: String,
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

/// Finds orders, at most `limit`, sorted by merchant and identifier; those of all merchants with a prefix
/// are sorted by identifier first. [`Search::newest_first`] sorts by creation time instead. The flag is true when the page was truncated because its orders are
/// large.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    search: &Search,
    limit: i64,
) -> Result<(Vec<StoredOrder>, bool), DatabaseError> {
    let sort_columns = search.sort_columns();
    let (before, behind) = limit_page_bytes(sort_columns);
    let mut query = diesel::sql_query(format!(
        "{before}SELECT merchant, identifier, status, created_at, updated_at, received_at, \
             document, octet_length(document) AS weight \
         FROM orders WHERE true"
    ))
    .into_boxed();
    let mut bound = 0;
    for (sql, values) in search.conditions() {
        let mut sql = format!(" AND {sql}");
        for _ in &values {
            bound += 1;
            sql = sql.replacen('?', &format!("${bound}"), 1);
        }
        query =
            values.into_iter().fold(query.sql(sql), |query, value| query.bind::<Text, _>(value));
    }
    let page = format!(" ORDER BY {sort_columns} LIMIT ${}{behind}", bound + 1);
    query = query.sql(page).bind::<BigInt, _>(limit);
    let rows: Vec<FoundRow> = prepared(query).load(conn).await?;
    let is_truncated = is_truncated(&rows, |row| row.found);
    let orders: Result<_, _> = rows.into_iter().map(StoredOrder::try_from).collect();
    Ok((orders?, is_truncated))
}

impl TryFrom<FoundRow> for StoredOrder {
    type Error = diesel::result::Error;

    fn try_from(row: FoundRow) -> Result<Self, diesel::result::Error> {
        let FoundRow { identifier, status, created_at, updated_at, received_at, .. } = row;
        let merchant = row.merchant.parse().map_err(unreadable::<InvalidMerchantId>)?;
        let document = RawValue::from_string(row.document).map_err(unreadable)?;
        Ok(Self { merchant, identifier, status, created_at, updated_at, received_at, document })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_after_all_texts_that_have_it() {
        assert_eq!(prefix_end("A-10").as_deref(), Some("A-11"));
        assert_eq!(prefix_end("A9").as_deref(), Some("A:"));
        assert_eq!(prefix_end("\u{d7ff}").as_deref(), Some("\u{e000}"));
        assert_eq!(prefix_end("A\u{10ffff}").as_deref(), Some("B"));
        assert_eq!(prefix_end("\u{10ffff}"), None);
        assert_eq!(prefix_end(""), None);
    }
}
