//! CSV (RFC 4180) that spreadsheets open safely.

/// A row with its line ending.
pub fn row<T: AsRef<str>>(cells: impl IntoIterator<Item = T>) -> String {
    let cells: Vec<_> = cells.into_iter().map(|cell| quoted(cell.as_ref())).collect();
    format!("{}\r\n", cells.join(","))
}

/// Quotes a cell. An apostrophe keeps spreadsheets from running it as a formula.
pub fn quoted(cell: &str) -> String {
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula() {
        for start in ["=", "+", "-", "@", "\t", "\r", "\n"] {
            let cell = quoted(&format!("{start}=1"));
            assert!(cell.trim_start_matches('"').starts_with('\''), "{cell:?}");
        }
        assert_eq!(quoted("1001"), "1001");
    }

    #[test]
    fn cells_with_commas_and_quotes_are_quoted() {
        assert_eq!(row(["a", "b,c", "say \"no\"", "=1"]), "a,\"b,c\",\"say \"\"no\"\"\",'=1\r\n");
    }
}
