//! The rows of the page: one for each line of an order.

use std::collections::BTreeSet;

use pages::form::{Field, Fields};

use crate::{
    draft::{Choice, MAX_CHOICES, ReturnDraft, line_key},
    order::{Line, Order},
    page::Page,
    refusal::{self, Refusal},
    sent::Problem,
};

/// The number of units that a shopper can return at once.
pub(crate) const MAX_UNITS: u32 = 500;

/// The place of the counts and reasons: the choices of the URL, or the fields of the form.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Chosen(&'a ReturnDraft),
    Typed(&'a Fields),
}

#[derive(Debug)]
pub(crate) struct OrderRows {
    pub(crate) identifier: String,
    currency: String,
    /// A sentence if the order can have no further exchange.
    pub(crate) note: Option<String>,
    pub(crate) is_truncated: bool,
    pub(crate) rows: Vec<Row>,
}

/// A line of an order with the count and the reason that the shopper chose.
#[derive(Debug)]
pub(crate) struct Row {
    /// The number on the page, for the ids of fields.
    pub(crate) index: usize,
    /// The line in the names of fields.
    pub(crate) key: String,
    order: String,
    line: String,
    pub(crate) title: String,
    pub(crate) image: Option<String>,
    pub(crate) price: Option<String>,
    pub(crate) until: Option<String>,
    /// Sentences about the units that cannot be returned.
    pub(crate) blocked: Vec<String>,
    pub(crate) max: u32,
    pub(crate) count: Field,
    pub(crate) reason: Field,
}

impl OrderRows {
    /// The rows of an order. `first` is the number of rows before them.
    pub(super) fn new(
        page: &Page,
        order: &Order,
        source: Source<'_>,
        first: usize,
        is_gift: bool,
    ) -> Self {
        let is_closed = is_gift && !order.exchange_possible;
        let note = match (order.exchange_possible, is_gift) {
            (true, _) => None,
            (false, true) => Some(page.t("choose-no-exchange-gift")),
            (false, false) => Some(page.t("choose-no-exchange")),
        };
        let lines = order.lines.iter().zip(first..);
        Self {
            rows: lines
                .map(|(line, index)| Row::new(page, line, index, source, is_closed))
                .collect(),
            identifier: order.identifier.clone(),
            currency: order.currency.clone(),
            is_truncated: order.is_truncated,
            note,
        }
    }

    /// Puts an error beside every field that is not possible.
    pub(super) fn check(&mut self, page: &Page) -> Vec<Problem> {
        self.rows.iter_mut().flat_map(|row| row.check(page)).collect()
    }

    /// The choices for the rows, with the earlier choices of the next step.
    pub(super) fn choices(&self, draft: &ReturnDraft) -> Vec<Choice> {
        let chosen = self.rows.iter().filter(|row| row.units() > 0);
        chosen.map(|row| row.choice(draft)).collect()
    }
}

/// The error that concerns several rows. Rows with an error of their own may still choose something.
pub(super) fn check_all(page: &Page, orders: &[OrderRows], has_errors: bool) -> Option<Problem> {
    let rows = || orders.iter().flat_map(|order| &order.rows);
    let units: u32 = rows().map(Row::units).sum();
    let lines = rows().filter(|row| row.units() > 0).count();
    let used = orders.iter().filter(|order| order.rows.iter().any(|row| row.units() > 0));
    let currencies: BTreeSet<_> = used.map(|order| &order.currency).collect();
    let text = if units == 0 && has_errors {
        return None;
    } else if units == 0 {
        page.t("choose-nothing")
    } else if units > MAX_UNITS || lines > MAX_CHOICES {
        page.t1("choose-too-many", "count", MAX_UNITS)
    } else if currencies.len() > 1 {
        page.t("choose-other-currency")
    } else {
        return None;
    };
    let row = rows().find(|row| row.max > 0);
    let id = row.map_or_else(|| "items".to_owned(), |row| format!("count-{}", row.index));
    Some(Problem { id, text })
}

impl Row {
    fn new(page: &Page, line: &Line, index: usize, source: Source<'_>, is_closed: bool) -> Self {
        let key = line_key(&line.order, &line.identifier);
        let (count, reason) = match source {
            Source::Chosen(draft) => {
                let choice = draft.choice(&line.order, &line.identifier);
                let count = choice.map_or(0, |choice| choice.count);
                (count.to_string(), choice.map_or("", |choice| &choice.reason).to_owned())
            }
            Source::Typed(fields) => {
                let text = |name: &str| fields.text(&format!("{name}.{key}")).to_owned();
                (text("count"), text("reason"))
            }
        };
        Self {
            index,
            order: line.order.clone(),
            line: line.identifier.clone(),
            title: line.title.clone(),
            image: page.portal.image(line.image_url.as_deref()).map(str::to_owned),
            price: price(page, line),
            until: last_days(page, line),
            blocked: blocked(page, line),
            max: if is_closed { 0 } else { line.free_count() },
            count: Field::new(if count.is_empty() { "0" } else { &count }),
            reason: Field::new(reason),
            key,
        }
    }

    /// Whether the check box of a single unit is ticked.
    pub(crate) fn is_taken(&self) -> bool {
        self.units() == 1
    }

    /// The number of units to return; zero if it is not a possible number.
    fn units(&self) -> u32 {
        self.count.value.parse().ok().filter(|count| *count <= self.max).unwrap_or(0)
    }

    fn check(&mut self, page: &Page) -> Vec<Problem> {
        let title = &self.title;
        let index = self.index;
        let is_reason = page.portal.reason(&self.reason.value).is_some();
        let count = &mut self.count;
        let reason = &mut self.reason;
        match count.value.parse::<u32>() {
            Ok(0) => {}
            Ok(number) if number <= self.max => {
                if !is_reason {
                    reason.reject(page.t1("choose-reason-missing", "title", title));
                }
            }
            _ if self.max == 0 => {
                count.reject(page.t1("choose-not-possible", "title", title));
            }
            _ => count.reject(page.t2("choose-count-wrong", "title", title, "max", self.max)),
        }
        let problem = |name: &str, field: &Field| {
            let text = field.error.clone()?;
            let id = if self.max == 0 { "items".to_owned() } else { format!("{name}-{index}") };
            Some(Problem { id, text })
        };
        [problem("count", count), problem("reason", reason)].into_iter().flatten().collect()
    }

    fn choice(&self, draft: &ReturnDraft) -> Choice {
        let earlier = draft.choice(&self.order, &self.line).cloned().unwrap_or_default();
        Choice {
            order: self.order.clone(),
            line: self.line.clone(),
            count: self.units(),
            reason: self.reason.value.clone(),
            ..earlier
        }
    }
}

fn price(page: &Page, line: &Line) -> Option<String> {
    let paid = line.paid();
    let first = paid.first()?;
    let count = u32::try_from(paid.len()).unwrap_or(u32::MAX);
    let money = |cents: &i64| page.money(cents, &line.currency);
    Some(match (paid.iter().all(|amount| amount == first), count) {
        (_, 1) => page.t1("choose-paid", "price", money(first)),
        (true, _) => page.t1("choose-paid-each", "price", money(first)),
        // A discount that cannot be divided: the sum is one price, and exact.
        (false, _) => {
            page.t2("choose-paid-all", "price", money(&paid.iter().sum()), "count", count)
        }
    })
}

/// The last day on which the units of a line can be returned, or the first and the last of these days.
fn last_days(page: &Page, line: &Line) -> Option<String> {
    // The units are sorted by the end of their time.
    let first = page.date(&line.free.first()?.last_day());
    let last = page.date(&line.free.last()?.last_day());
    Some(if first == last {
        page.t1("choose-until", "date", first)
    } else {
        page.t2("choose-until-range", "first", first, "last", last)
    })
}

fn blocked(page: &Page, line: &Line) -> Vec<String> {
    let is_whole = line.free.is_empty() && line.blocked.len() == 1;
    let sentence =
        |(refused, (count, until)): (&Refusal, &(u32, chrono::DateTime<chrono::Utc>))| {
            let reason = refusal::sentence(page, refused, Some(*until));
            if is_whole {
                reason
            } else {
                page.t2("choose-blocked", "count", *count, "reason", reason)
            }
        };
    line.blocked.iter().map(sentence).collect()
}

#[cfg(test)]
mod tests;
