//! Limits the size of a page in bytes, because a row may be a thousand times as large as usual.

/// A page ends after the row that makes it at least this large.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Returns the SQL before and after a query that truncates its rows by size in the database. The query
/// must be sorted by `order`, a unique column, and return a `weight` in bytes for each row. The column
/// `found` is the number of rows before truncation.
pub fn limit_page_bytes(order: &str) -> (String, String) {
    let before = format!(
        "SELECT * FROM ( \
             SELECT *, count(*) OVER () AS found, \
                 sum(weight) OVER (ORDER BY {order}) - weight AS before \
             FROM ("
    );
    let after = format!(") AS page) AS weighed WHERE before < {MAX_PAGE_BYTES} ORDER BY {order}");
    (before, after)
}

/// Whether [`limit_page_bytes`] truncated these rows.
pub fn is_truncated<T>(shown: &[T], found: impl Fn(&T) -> i64) -> bool {
    let length = i64::try_from(shown.len()).unwrap_or(i64::MAX);
    shown.first().is_some_and(|row| found(row) > length)
}
