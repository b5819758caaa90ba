//! Pages that end where they get heavy: rows may be a thousand times as large as usual.

/// A page ends after the row that makes it this heavy, in bytes.
const HEAVY: usize = 4 * 1024 * 1024;

/// What goes before and after a query to cut its rows by weight, without reading them. The query
/// is sorted by `order`, which no two rows share, and gives each row a `weight` in bytes; `found`
/// says how many rows there were before the cut.
pub fn limit_page_bytes(order: &str) -> (String, String) {
    let before = format!(
        "SELECT * FROM ( \
             SELECT *, count(*) OVER () AS found, \
                 sum(weight) OVER (ORDER BY {order}) - weight AS before \
             FROM ("
    );
    let after = format!(") AS page) AS weighed WHERE before < {HEAVY} ORDER BY {order}");
    (before, after)
}

/// Whether rows were cut off behind these.
pub fn is_truncated<T>(shown: &[T], found: impl Fn(&T) -> i64) -> bool {
    let length = i64::try_from(shown.len()).unwrap_or(i64::MAX);
    shown.first().is_some_and(|row| found(row) > length)
}
