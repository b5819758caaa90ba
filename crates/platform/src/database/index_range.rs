//! Conditions and orders that only one index can serve.

/// A part of an index: the rows whose first columns have given values, in the order of the others.
///
/// All columns are compared together, and the order names all of them. With equalities, PostgreSQL might read an
/// index that has the same order but not these columns, and skip the rows with other values. It skips all of
/// them if the wanted rows come last.
pub struct IndexRange<'a> {
    /// Columns and the SQL of their values.
    pub fixed: &'a [(&'a str, String)],
    /// The columns that sort the rows.
    pub sorted: &'a [&'a str],
}

impl IndexRange<'_> {
    /// The condition. A bound is an operator and the SQL of a value for each sorted column.
    pub fn condition(&self, from: Option<(&str, &str)>, to: Option<(&str, &str)>) -> String {
        let mut conditions = Vec::new();
        for (whole, bound) in [(">=", from), ("<=", to)] {
            let mut columns: Vec<_> = self.fixed.iter().map(|(column, _)| *column).collect();
            let mut values: Vec<_> = self.fixed.iter().map(|(_, value)| value.as_str()).collect();
            let mut operator = whole;
            if let Some((of_bound, bounds)) = bound {
                columns.extend_from_slice(self.sorted);
                values.push(bounds);
                operator = of_bound;
            }
            if !columns.is_empty() {
                let (columns, values) = (columns.join(", "), values.join(", "));
                conditions.push(format!("({columns}) {operator} ({values})"));
            }
        }
        if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") }
    }

    /// The columns of an `ORDER BY`, each with a direction.
    pub fn order(&self, direction: &str) -> String {
        let columns = self.fixed.iter().map(|(column, _)| *column);
        let columns = columns.chain(self.sorted.iter().copied());
        columns.map(|column| format!("{column} {direction}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_are_compared_together() {
        let fixed = [("merchant", "$2".to_owned()), ("state", "$3".to_owned())];
        let range = IndexRange { fixed: &fixed, sorted: &["at", "id"] };
        assert_eq!(
            range.condition(None, Some(("<", "$4, $5"))),
            "(merchant, state) >= ($2, $3) AND (merchant, state, at, id) < ($2, $3, $4, $5)"
        );
        assert_eq!(range.order("DESC"), "merchant DESC, state DESC, at DESC, id DESC");
        let all = IndexRange { fixed: &[], sorted: &["id"] };
        assert_eq!(all.condition(Some((">", "$1")), None), "(id) > ($1)");
        assert_eq!(all.condition(None, None), "true");
        assert_eq!(all.order("ASC"), "id ASC");
    }
}
