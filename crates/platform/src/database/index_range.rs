//! Conditions and orders that only one index can serve.

/// A part of an index: the rows whose first columns have given values, in the order of the others.
///
/// The last fixed column and the sorted ones are compared together, and the order names all of them. With an
/// equality of the last fixed column, PostgreSQL might read an index that has the same order but not this
/// column, and skip the rows with other values. It skips all of them if the wanted rows come last. The other
/// fixed columns have equalities: PostgreSQL ends a scan only by the first column of a comparison.
pub struct IndexRange<'a> {
    /// Columns and the SQL of their values.
    pub fixed: &'a [(&'a str, String)],
    /// The columns that sort the rows.
    pub sorted: &'a [&'a str],
}

impl IndexRange<'_> {
    /// The condition for the rows from one bound to another. A bound is an operator and the SQL of a value for
    /// each sorted column. With the fixed columns `merchant` and `state` and the sorted columns `at` and `id`,
    /// the bound `("<", "$4, $5")` as `to` gives
    ///
    /// ```text
    /// merchant = $2 AND (state) >= ($3) AND (at, id) <> ($4, $5) AND (state, at, id) <= ($3, $4, $5)
    /// ```
    ///
    /// A scan begins at the first bound that it reaches and ends after the last fixed value, not at the second
    /// bound: callers limit the number of rows.
    pub fn condition(&self, from: Option<(&str, &str)>, to: Option<(&str, &str)>) -> String {
        let (last_fixed, other_fixed) = match self.fixed {
            [other_fixed @ .., last] => (Some(last), other_fixed),
            [] => (None, &[][..]),
        };
        let mut conditions: Vec<_> =
            other_fixed.iter().map(|(column, value)| format!("{column} = {value}")).collect();
        for (operator, bound) in [(">=", from), ("<=", to)] {
            let mut columns: Vec<_> = last_fixed.iter().map(|(column, _)| *column).collect();
            let mut values: Vec<_> = last_fixed.iter().map(|(_, value)| value.as_str()).collect();
            if let Some((bound_operator, bound_values)) = bound {
                columns.extend_from_slice(self.sorted);
                values.push(bound_values);
                if bound_operator != operator {
                    // PostgreSQL estimates a comparison by its first column: with < it would expect no rows,
                    // and sort all of them.
                    conditions.push(format!("({}) <> ({bound_values})", self.sorted.join(", ")));
                }
            }
            if !columns.is_empty() {
                let columns = columns.join(", ");
                let values = values.join(", ");
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
    fn the_last_fixed_column_is_compared_with_the_sorted_ones() {
        let fixed = [("merchant", "$2".to_owned()), ("state", "$3".to_owned())];
        let range = IndexRange { fixed: &fixed, sorted: &["at", "id"] };
        assert_eq!(
            range.condition(None, Some(("<", "$4, $5"))),
            "merchant = $2 AND (state) >= ($3) AND (at, id) <> ($4, $5) AND (state, at, id) <= ($3, $4, $5)"
        );
        assert_eq!(range.order("DESC"), "merchant DESC, state DESC, at DESC, id DESC");
        let all = IndexRange { fixed: &[], sorted: &["id"] };
        assert_eq!(all.condition(Some((">", "$1")), None), "(id) <> ($1) AND (id) >= ($1)");
        assert_eq!(all.condition(None, None), "true");
        assert_eq!(all.order("ASC"), "id ASC");
    }
}
