//! Finds stored orders.

use api::orders::StoredOrder;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::access::{InvalidMerchantId, MerchantId};
use platform::Timestamp;
use platform::database::{DatabaseError, Each, is_truncated, limit_page_bytes, prepared, sql};
use serde_json::value::RawValue;

use super::error::unreadable;
use super::line_identifiers::searchable;
use crate::stored_order::OrderKey;

/// Filters of a search. `None` matches every order. At most one of the prefix, the e-mail address and the
/// line may be given: no index has two of them.
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
const AFTER_OLDER: &str = "(merchant, created_at, identifier) < \
    (?, (SELECT created_at FROM orders WHERE merchant = ? AND identifier = ?), ?)";
/// The orders with a line, sorted like the lines. Concurrent snapshots of an order can leave a line behind that
/// the order does not have, so the order decides. `LIMIT` keeps the order of the lines.
const ORDERS_OF_LINE: &str = include_str!("orders_of_line.sql");

/// A condition in SQL with a `?` for each of its values.
type Condition = (&'static str, Vec<String>);

impl Search {
    /// The columns that sort the orders. An index has the orders of every search in this order.
    fn sort_columns(&self) -> &'static str {
        if self.newest_first {
            "created_at DESC, identifier DESC"
        } else if self.is_sorted_by_identifier() {
            "identifier, merchant"
        } else {
            "merchant, identifier"
        }
    }

    /// Whether the identifier sorts before the merchant. Only that index finds a prefix in all merchants.
    fn is_sorted_by_identifier(&self) -> bool {
        self.merchant.is_none() && self.identifier_prefix.is_some()
    }

    /// Whether the line finds the orders. If the order is named too, the order does.
    fn is_by_line(&self) -> bool {
        self.line_identifier.is_some() && self.identifier.is_none()
    }

    /// The orders of the page, as the `FROM` and `WHERE` of a query, and the values of its parameters from `$2` on.
    ///
    /// Without an identifier or a line, the page is the next part of an index, and the filters drop what is behind
    /// the wanted orders. With the filters as conditions on the index, PostgreSQL might read another index that
    /// has the same order, and skip the orders of other merchants or shoppers.
    fn found(&self) -> (String, Vec<String>) {
        let mut values = Vec::new();
        let table = if self.is_by_line() {
            ORDERS_OF_LINE.to_owned()
        } else if self.is_by_equality() {
            "orders".to_owned()
        } else {
            let not_null =
                self.customer_email.as_ref().map_or("", |_| "customer_email IS NOT NULL AND ");
            let start = join(&mut values, [self.start()]);
            let order = self.index_order();
            format!(
                "(SELECT * FROM orders WHERE {not_null}{start} ORDER BY {order} LIMIT $1) AS orders"
            )
        };
        let after = self.after().filter(|_| self.is_by_equality());
        let filters = join(&mut values, self.filters().into_iter().chain(after));
        (format!("{table} WHERE {filters}"), values)
    }

    /// Whether equalities find the orders: of an identifier, or of a line, whose table has one index.
    fn is_by_equality(&self) -> bool {
        self.identifier.is_some() || self.line_identifier.is_some()
    }

    /// The columns of the index that has the orders.
    fn index_order(&self) -> &'static str {
        if self.newest_first {
            "merchant DESC, created_at DESC, identifier DESC"
        } else if self.customer_email.is_some() && !self.is_by_equality() {
            "customer_email, merchant, identifier"
        } else {
            self.sort_columns()
        }
    }

    /// The condition with which a page starts in its index.
    fn start(&self) -> Condition {
        let merchant = self.merchant.as_ref().map(ToString::to_string);
        let prefix = self.identifier_prefix.clone().unwrap_or_default();
        if let Some(after) = self.after() {
            return after;
        }
        match (&self.customer_email, merchant) {
            (Some(email), Some(merchant)) => {
                ("(customer_email, merchant) >= (?, ?)", vec![email.clone(), merchant])
            }
            (Some(email), None) => ("customer_email >= ?", vec![email.clone()]),
            (None, Some(merchant)) if self.newest_first => ("merchant <= ?", vec![merchant]),
            (None, Some(merchant)) => ("(merchant, identifier) >= (?, ?)", vec![merchant, prefix]),
            (None, None) => ("identifier >= ?", vec![prefix]),
        }
    }

    /// The condition that an order is sorted after the last one of the previous page.
    fn after(&self) -> Option<Condition> {
        let OrderKey { merchant, identifier } = self.after.as_ref()?;
        let merchant = merchant.to_string();
        let identifier = identifier.clone();
        Some(match &self.customer_email {
            _ if self.newest_first => {
                let own = self.merchant.as_ref().map(ToString::to_string).unwrap_or_default();
                (AFTER_OLDER, vec![own, merchant, identifier.clone(), identifier])
            }
            _ if self.is_sorted_by_identifier() => {
                ("(identifier, merchant) > (?, ?)", vec![identifier, merchant])
            }
            Some(email) if !self.is_by_equality() => (
                "(customer_email, merchant, identifier) > (?, ?, ?)",
                vec![email.clone(), merchant, identifier],
            ),
            // Beside an equality of the merchant, a comparison of both would read the page before, too.
            _ if self.is_by_equality() && self.merchant.is_some() => {
                ("identifier > ?", vec![identifier])
            }
            _ => ("(merchant, identifier) > (?, ?)", vec![merchant, identifier]),
        })
    }

    /// The conditions of the filters that are used. PostgreSQL could not choose the right index if the
    /// query had the others too.
    fn filters(&self) -> Vec<Condition> {
        let prefix = self.identifier_prefix.as_deref();
        let has_line =
            if self.is_by_line() { "line_identifier = ?" } else { "? = ANY (line_identifiers)" };
        let filters = [
            ("merchant = ?", self.merchant.as_ref().map(ToString::to_string)),
            ("identifier = ?", self.identifier.clone()),
            ("identifier >= ?", prefix.map(str::to_owned)),
            ("identifier < ?", prefix.and_then(prefix_end)),
            ("customer_email = ?", self.customer_email.clone()),
            (has_line, self.line_identifier.as_deref().map(|it| searchable(it).into_owned())),
        ];
        filters.into_iter().filter_map(|(sql, value)| Some((sql, vec![value?]))).collect()
    }
}

/// Joins conditions, whose values become the next parameters. The first parameter is the limit.
fn join(values: &mut Vec<String>, conditions: impl IntoIterator<Item = Condition>) -> String {
    let mut joined = "true".to_owned();
    for (sql, of_condition) in conditions {
        let mut sql = format!(" AND {sql}");
        for value in of_condition {
            values.push(value);
            sql = sql.replacen('?', &format!("${}", values.len() + 1), 1);
        }
        joined.push_str(&sql);
    }
    joined
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

platform::rows! {
    struct FoundRow {
        merchant: String,
        identifier: String,
        status: String,
        created_at: Timestamp,
        updated_at: Timestamp,
        received_at: Timestamp,
        document: String,
        found: i64,
    }
}

/// Finds orders, at most `limit`, sorted by merchant and identifier; those of all merchants with a prefix
/// are sorted by identifier first. [`Search::newest_first`] sorts by creation time instead. The flag is
/// true when the page was truncated because its orders are large.
pub(crate) async fn search(
    conn: &mut AsyncPgConnection,
    search: &Search,
    limit: i64,
) -> Result<(Vec<StoredOrder>, bool), DatabaseError> {
    let sort_columns = search.sort_columns();
    let (before, behind) = limit_page_bytes(sort_columns);
    let (found, values) = search.found();
    let query = sql(
        format!(
            "{before}SELECT merchant, identifier, status, created_at, updated_at, received_at, \
             document, octet_length(document) AS weight \
         FROM {found} ORDER BY {sort_columns} LIMIT $1{behind}"
        ),
        (limit, Each(values)),
    );
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
