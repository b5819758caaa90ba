//! The units of a withdrawal: a number for each line of the order.

use std::collections::BTreeSet;

use domain::merchant::WITHDRAWAL;
use pages::form::{Field, Fields};

use crate::{
    basket::Item,
    check::Request,
    choose::MAX_UNITS,
    draft::{Choice, Resolution, line_key},
    order::Line,
    page::Page,
    sent::Problem,
};

/// A line with units that can be returned, and the number of units to withdraw from.
pub(super) struct WithdrawLine {
    pub(super) line: Line,
    /// The line in the name of its field.
    pub(super) key: String,
    pub(super) count: Field,
}

/// The lines with units that can be returned. All units are chosen, or as many as the form says.
pub(super) fn lines(lines: Vec<Line>, sent: Option<&Fields>) -> Vec<WithdrawLine> {
    let returnable = lines.into_iter().filter(|line| !line.free.is_empty());
    let with_count = |line: Line| {
        let key = line_key(&line.order, &line.identifier);
        let count = match sent.map(|sent| sent.text(&format!("count.{key}"))) {
            None => line.free_count().to_string(),
            // A box that is not ticked.
            Some("") => "0".to_owned(),
            Some(text) => text.to_owned(),
        };
        WithdrawLine { line, key, count: Field::new(count) }
    };
    returnable.map(with_count).collect()
}

impl WithdrawLine {
    /// The number of chosen units; zero if it is not a possible number.
    pub(super) fn units(&self) -> u32 {
        let count = self.count.value.parse().ok();
        count.filter(|count| *count <= self.line.free_count()).unwrap_or(0)
    }

    /// Reduces the number to the units that are left.
    pub(super) fn reduce_to_free_units(&mut self) {
        let count = self.count.value.parse().unwrap_or(u32::MAX);
        self.count = Field::new(count.min(self.line.free_count()).to_string());
    }

    /// The chosen units, if there are any.
    pub(super) fn item(&self) -> Option<Item> {
        let choice = Choice {
            order: self.line.order.clone(),
            line: self.line.identifier.clone(),
            count: self.units(),
            reason: WITHDRAWAL.to_owned(),
            resolution: Some(Resolution::Refund),
            variant: String::new(),
        };
        (choice.count > 0).then(|| Item::refunded(choice, self.line.clone()))
    }

    fn check(&mut self, page: &Page, number: usize) -> Option<Problem> {
        let title = &self.line.title;
        let max = self.line.free_count();
        if self.count.value.parse::<u32>().is_ok_and(|count| count <= max) {
            return None;
        }
        let text = page.t2("choose-count-wrong", "title", title, "max", max);
        self.count.reject(&text);
        Some(Problem { id: format!("count-{number}"), text })
    }
}

/// The errors of the numbers. Each is beside its field, too.
pub(super) fn check(page: &Page, lines: &mut [WithdrawLine]) -> Vec<Problem> {
    let numbered = (1..).zip(lines.iter_mut());
    let mut problems: Vec<_> =
        numbered.filter_map(|(number, line)| line.check(page, number)).collect();
    let units = lines.iter().map(WithdrawLine::units).fold(0, u32::saturating_add);
    let text = match units {
        0 if problems.is_empty() => page.t("withdraw-none"),
        0..=MAX_UNITS => return problems,
        _ => page.t1("choose-too-many", "count", MAX_UNITS),
    };
    problems.push(Problem { id: "count-1".to_owned(), text });
    problems
}

/// Whether the form has the units and the method that its page showed.
pub(super) fn is_as_shown(sent: &Fields, shown: &Request) -> bool {
    let items = shown.items.iter();
    let items: BTreeSet<_> =
        items.map(|item| (line_key(&item.order, &item.line), Some(item.units.len()))).collect();
    let count = |text: &str| if text.is_empty() { Some(0) } else { text.parse().ok() };
    let counts = sent.pairs().iter().filter_map(|(name, value)| {
        Some((name.strip_prefix("count.")?.to_owned(), count(value.trim())))
    });
    let counts: BTreeSet<_> = counts.filter(|(_, count)| *count != Some(0)).collect();
    counts == items && sent.text("method") == shown.method
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        basket::tests::page,
        check::tests::request,
        order::tests::{order, unit},
    };

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn shown(sent: Option<&Fields>) -> Vec<WithdrawLine> {
        let mut sold = unit("none", 1);
        sold["returnable"] = json!(false);
        lines(order(&[unit("ü 10", 3), unit("ü 10", 7), unit("2", 1), sold]).lines, sent)
    }

    #[test]
    fn all_units_that_can_be_returned_are_chosen_at_first() {
        let mut lines = shown(None);
        assert!(check(&page(), &mut lines).is_empty());
        let units: Vec<_> =
            lines.iter().filter_map(WithdrawLine::item).map(|it| it.units()).collect();
        assert_eq!(units, [vec![3, 7], vec![1]]);
    }

    #[test]
    fn a_wrong_number_has_an_error_at_its_field() {
        for wrong in ["1.5", "abc", "-1", "3", "99999999999"] {
            let sent = fields(&[("count.A-1~%C3%BC%2010", wrong), ("count.A-1~2", "1")]);
            let mut lines = shown(Some(&sent));
            let problems = check(&page(), &mut lines);
            let ids: Vec<_> = problems.iter().map(|problem| problem.id.as_str()).collect();
            assert_eq!(ids, ["count-1"], "{wrong}");
            assert!(problems[0].text.contains("from 0 to 2"), "{problems:?}");
            assert_eq!(lines[0].count.value, wrong);
            assert!(!lines[0].count.is_valid() && lines[1].count.is_valid());
        }
        let problems = check(&page(), &mut shown(Some(&fields(&[]))));
        assert_eq!(problems[0].text, page().t("withdraw-none"));
    }

    #[test]
    fn a_number_is_reduced_to_the_units_that_are_left() {
        let mut lines = shown(Some(&fields(&[("count.A-1~2", "2")])));
        lines.iter_mut().for_each(WithdrawLine::reduce_to_free_units);
        let counts: Vec<_> = lines.iter().map(WithdrawLine::units).collect();
        assert_eq!(counts, [0, 1]);
    }

    #[test]
    fn other_units_and_another_method_were_not_shown() {
        // The request is for two units of the line 1.
        let request = request("refund", None);
        for (pairs, expected) in [
            (vec![("count.A-1~1", "2"), ("method", "mail-back")], true),
            (vec![("count.A-1~1", " 2 "), ("count.A-1~2", "0"), ("method", "mail-back")], true),
            (vec![("count.A-1~1", "2"), ("count.A-1~2", ""), ("method", "mail-back")], true),
            (vec![("count.A-1~1", "1"), ("method", "mail-back")], false),
            (vec![("count.A-1~1", "x"), ("method", "mail-back")], false),
            (vec![("count.A-1~1", "2"), ("count.A-1~2", "1"), ("method", "mail-back")], false),
            (vec![("count.A-1~1", "2"), ("method", "express-returns")], false),
            (vec![("method", "mail-back")], false),
        ] {
            assert_eq!(is_as_shown(&fields(&pairs), &request), expected, "{pairs:?}");
        }
    }
}
