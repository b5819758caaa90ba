//! The bounds of a list: those of its filters by time, and the end of the page before.

use platform::Timestamp;
use platform::http::ListOrder;

use super::parameters::Parameters;
use super::{Place, Search};

/// An operator and its operands.
type Bound<'a> = (&'a str, &'a str);

pub(super) struct Times {
    order: ListOrder,
    /// The operands for the place behind which the page starts.
    start: Option<String>,
    /// The operand for the time at which the returns end.
    end: Option<String>,
}

impl Times {
    /// The bounds of the creation time. No identifier is empty, so a time alone is the place before all returns of that
    /// time.
    pub(super) fn of_creation(search: &Search, parameters: &mut Parameters) -> Self {
        let (first, last) = match search.order {
            ListOrder::Newest => (search.to, search.from),
            ListOrder::Oldest => (search.from, search.to),
        };
        let start = Self::start(search, first.map(|first| (first, String::new())));
        let start = start.map(|(time, identifier)| {
            let time = parameters.add(time);
            format!("{time}, {}", parameters.add(identifier.as_str()))
        });
        Self { order: search.order, start, end: last.map(|last| parameters.add(last)) }
    }

    /// The bounds of the time of changes, which end at `horizon`. No position is 0.
    pub(super) fn of_changes(
        search: &Search,
        horizon: Timestamp,
        parameters: &mut Parameters,
    ) -> Self {
        let start = Self::start(search, search.updated_from.map(|from| (from, "0".to_owned())));
        let start = start.map(|(time, position)| {
            let time = parameters.add(time);
            format!("{time}, {}", parameters.add(position.parse::<i64>().unwrap_or_default()))
        });
        let end = search.updated_to.map_or(horizon, |to| to.min(horizon));
        Self { order: search.order(), start, end: Some(parameters.add(end)) }
    }

    /// The later of the place of a filter and that of the page.
    fn start(search: &Search, first: Option<Place>) -> Option<Place> {
        let starts = first.into_iter().chain(search.after.clone());
        match search.order() {
            ListOrder::Newest => starts.min(),
            ListOrder::Oldest => starts.max(),
        }
    }

    /// The bounds of the index: the lower and the upper one.
    pub(super) fn bounds(&self) -> (Option<Bound<'_>>, Option<Bound<'_>>) {
        let start = self.start.as_deref();
        match self.order {
            ListOrder::Newest => (None, start.map(|start| ("<", start))),
            ListOrder::Oldest => (start.map(|start| (">", start)), None),
        }
    }

    /// The condition of the returns that are not behind the last time of a column. A scan of an index would not end
    /// there.
    pub(super) fn end(&self, column: &str) -> String {
        let operator = match self.order {
            ListOrder::Newest => ">=",
            ListOrder::Oldest => "<",
        };
        let condition = |end: &String| format!("{column} {operator} {end}");
        self.end.as_ref().map_or("true".to_owned(), condition)
    }
}
