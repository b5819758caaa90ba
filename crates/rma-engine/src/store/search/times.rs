//! The bounds of the creation time: of the filters, and of the page.

use platform::http::ListOrder;

use super::Search;
use super::parameters::Parameters;

/// An operator and its operands.
type Bound<'a> = (&'a str, &'a str);

pub(super) struct Times {
    order: ListOrder,
    /// The operands for the return behind which the page starts. No identifier is empty, so a time alone is the place
    /// before all returns of that time.
    start: Option<String>,
    /// The operand for the time at which the returns end.
    end: Option<String>,
}

impl Times {
    pub(super) fn new(search: &Search, parameters: &mut Parameters) -> Self {
        let (first, last) = match search.order {
            ListOrder::Newest => (search.to, search.from),
            ListOrder::Oldest => (search.from, search.to),
        };
        let starts = first.map(|first| (first, String::new())).into_iter();
        let starts = starts.chain(search.after.clone());
        let start = match search.order {
            ListOrder::Newest => starts.min(),
            ListOrder::Oldest => starts.max(),
        };
        let start = start.map(|(time, identifier)| {
            let time = parameters.add(time);
            format!("{time}, {}", parameters.add(identifier.as_str()))
        });
        Self { order: search.order, start, end: last.map(|last| parameters.add(last)) }
    }

    /// The bounds of the index: the lower and the upper one.
    pub(super) fn bounds(&self) -> (Option<Bound<'_>>, Option<Bound<'_>>) {
        let start = self.start.as_deref();
        match self.order {
            ListOrder::Newest => (None, start.map(|start| ("<", start))),
            ListOrder::Oldest => (start.map(|start| (">", start)), None),
        }
    }

    /// The condition of the returns that are not behind the last time. A scan of an index would not end there.
    pub(super) fn end(&self) -> String {
        let operator = match self.order {
            ListOrder::Newest => ">=",
            ListOrder::Oldest => "<",
        };
        let condition = |end: &String| format!("returns.created_at {operator} {end}");
        self.end.as_ref().map_or("true".to_owned(), condition)
    }
}
