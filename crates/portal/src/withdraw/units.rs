//! The units of a withdrawal in the fields of its form.
//!
//! The form names the units themselves, so that a form that is sent twice is the same request, which makes
//! one return.

use pages::form::Fields;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use crate::{draft::line_key, order::Line};

/// A line of the order with the number of units to withdraw from.
pub(super) struct WithdrawLine {
    pub(super) line: Line,
    pub(super) chosen: usize,
}

impl WithdrawLine {
    /// The value of the field that names the line's units: `ORDER~LINE~1,2,3`.
    pub(super) fn value(&self) -> String {
        let units: Vec<_> = self.line.free.iter().map(|unit| unit.number.to_string()).collect();
        format!("{}~{}", line_key(&self.line.order, &self.line.identifier), units.join(","))
    }
}

/// The lines with units that can be returned. All units are chosen, or as many as the form says.
pub(super) fn lines(lines: Vec<Line>, sent: Option<&Fields>) -> Vec<WithdrawLine> {
    let with_choice = |(number, line): (usize, Line)| {
        let all = line.free.len();
        let chosen = match sent {
            None => all,
            Some(sent) => count(sent, number).unwrap_or_default().min(all),
        };
        WithdrawLine { line, chosen }
    };
    let returnable = lines.into_iter().filter(|line| !line.free.is_empty());
    (1..).zip(returnable).map(with_choice).collect()
}

/// The units of a form as rma-engine wants them. `None` for a form that the page does not write.
pub(super) fn requested(sent: &Fields) -> Option<Vec<Value>> {
    let mut requested = Vec::new();
    for number in (1..).take_while(|number| sent.has(&format!("line-{number}"))) {
        let text = sent.text(&format!("line-{number}"));
        let parts: Option<Vec<String>> = text.split('~').map(decode).collect();
        let [order, line, units] = <[String; 3]>::try_from(parts?).ok()?;
        for unit in units.split(',').take(count(sent, number)?) {
            requested.push(json!({
                "order_identifier": order, "order_line_item_identifier": line,
                "unit": unit.parse::<i32>().ok()?,
                "return_reason": "withdrawal", "resolution": "refund",
            }));
        }
    }
    Some(requested)
}

/// The number of units of a line. An empty field and a box that is not ticked are none.
fn count(sent: &Fields, number: usize) -> Option<usize> {
    match sent.text(&format!("count-{number}")) {
        "" => Some(0),
        text => text.parse().ok(),
    }
}

fn decode(part: &str) -> Option<String> {
    Some(percent_decode_str(part).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::tests::{order, unit};

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn units(sent: &Fields) -> Option<Vec<(String, i64)>> {
        let number = |unit: &Value| {
            assert_eq!(unit["return_reason"], "withdrawal");
            let line = unit["order_line_item_identifier"].as_str().unwrap().to_owned();
            (line, unit["unit"].as_i64().unwrap())
        };
        Some(requested(sent)?.iter().map(number).collect())
    }

    #[test]
    fn a_form_names_the_units_themselves() {
        let sent = fields(&[
            ("line-1", "A-1~10%7E~2,4,5"),
            ("count-1", "2"),
            ("line-2", "A-1~11~1"),
            ("line-3", "A-1~12~1"),
            ("count-3", "1"),
        ]);
        let line = |name: &str, unit| (name.to_owned(), unit);
        assert_eq!(units(&sent), Some(vec![line("10~", 2), line("10~", 4), line("12", 1)]));
        assert_eq!(units(&fields(&[])), Some(Vec::new()));
    }

    #[test]
    fn forms_that_the_page_does_not_write_are_rejected() {
        for [line, count] in [["A~1", "1"], ["A~1~x", "1"], ["A~1~1", "-1"], ["A~1~1~1", "1"]] {
            let sent = fields(&[("line-1", line), ("count-1", count)]);
            assert_eq!(units(&sent), None, "{line} {count}");
        }
    }

    #[test]
    fn a_line_comes_back_as_it_was_written() {
        let mut sold = unit("none", 1);
        sold["returnable"] = json!(false);
        let found = order(&[unit("ü 10", 3), unit("ü 10", 7), sold]).lines;
        let shown = lines(found.clone(), None);
        assert_eq!((shown.len(), shown[0].chosen), (1, 2));
        let sent = fields(&[("line-1", &shown[0].value()), ("count-1", "9")]);
        assert_eq!(units(&sent).unwrap(), [("ü 10".to_owned(), 3), ("ü 10".to_owned(), 7)]);
        let again = lines(found, Some(&fields(&[("count-1", "1")])));
        assert_eq!(again[0].chosen, 1);
    }
}
