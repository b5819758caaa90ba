//! Limits the size of a page in bytes, because a row may be a thousand times as large as usual.

/// A page ends after the row that makes it at least this large.
const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Rows of a part that is read at once.
const MAX_PART_ROWS: usize = 1000;

/// Splits rows whose sizes are known into parts that are read one after the other. A part has at most
/// `MAX_PAGE_BYTES`, or one row.
pub fn parts_by_bytes<T>(rows: &[T], bytes: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let mut parts = Vec::new();
    let mut rest = rows;
    while !rest.is_empty() {
        let mut total = 0;
        let fits = |row: &&T| {
            total += bytes(row);
            total <= MAX_PAGE_BYTES
        };
        let length = rest.iter().take(MAX_PART_ROWS).take_while(fits).count().max(1);
        let (part, others) = rest.split_at(length);
        parts.push(part);
        rest = others;
    }
    parts
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_limited_in_bytes_and_rows() {
        let lengths = |rows: &[usize]| -> Vec<usize> {
            parts_by_bytes(rows, |bytes| *bytes).iter().map(|part| part.len()).collect()
        };
        assert_eq!(lengths(&[]), Vec::<usize>::new());
        let half = MAX_PAGE_BYTES / 2;
        assert_eq!(lengths(&[half, half, 1, 3 * half, half]), [2, 1, 1, 1]);
        assert_eq!(lengths(&[0; 2500]), [1000, 1000, 500]);
    }
}
