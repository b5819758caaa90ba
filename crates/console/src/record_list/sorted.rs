//! Lists that are sorted by time: their order, the number of entries and the links to other pages.

use pages::text::{count, grouped};

use super::query_string;

/// The field of a URL that holds the order.
pub(crate) const ORDER: &str = "order";

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Newest,
    Oldest,
}

impl Order {
    /// The order of a URL. The newest come first if it names no order that is known.
    pub(crate) fn of(text: &str) -> Self {
        if text == "oldest" { Self::Oldest } else { Self::Newest }
    }

    pub(crate) fn is_newest(self) -> bool {
        self == Self::Newest
    }

    /// The order in URLs and requests; empty for the usual one.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Newest => "",
            Self::Oldest => "oldest",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Newest => "newest first",
            Self::Oldest => "oldest first",
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Newest => Self::Oldest,
            Self::Oldest => Self::Newest,
        }
    }
}

/// A link: text and URL.
type Link = (&'static str, String);

/// The texts and links around a list.
#[derive(Debug)]
pub(crate) struct Sorted {
    order: Order,
    is_first: bool,
    /// The number of entries as far as the page knows it, and their order.
    pub(crate) summary: String,
    /// The list in the other order.
    pub(crate) other: Link,
    pub(crate) first: Option<Link>,
    pub(crate) next: Option<Link>,
}

impl Sorted {
    /// `pairs` are the fields of the URL, `after` is the cursor of this page and `next` that of the next one.
    pub(crate) fn new(
        path: &str,
        pairs: &[(&'static str, &str)],
        after: &str,
        next: Option<&str>,
    ) -> Self {
        let order = pairs.iter().find(|(name, _)| *name == ORDER);
        let order = Order::of(order.map_or("", |(_, value)| value));
        let url = |order: Order, after: &str| {
            let filter = pairs.iter().filter(|(name, _)| *name != ORDER).copied();
            let pairs: Vec<_> = filter.chain([(ORDER, order.value()), ("after", after)]).collect();
            format!("{path}?{}", query_string(&pairs))
        };
        let (first_name, next_name) = match order {
            Order::Newest => ("Newest", "Older"),
            Order::Oldest => ("Oldest", "Newer"),
        };
        Self {
            order,
            is_first: after.is_empty(),
            summary: String::new(),
            other: (order.other().words(), url(order.other(), "")),
            first: (!after.is_empty()).then(|| (first_name, url(order, ""))),
            next: next.map(|next| (next_name, url(order, next))),
        }
    }

    /// Adds the number of entries. Counting those of other pages would read too many rows.
    pub(crate) fn count(mut self, shown: usize, singular: &str, plural: &str) -> Self {
        let counted = match (self.is_first, self.next.is_some()) {
            (true, false) => count(shown, singular, plural),
            (true, true) => format!("more than {} {plural}", grouped(shown)),
            (false, _) if self.order.is_newest() => format!("older {plural}"),
            (false, _) => format!("newer {plural}"),
        };
        self.summary = format!("{counted}, {}", self.order.words());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(order: &str, after: &str, next: Option<&str>, shown: usize) -> Sorted {
        let pairs = [("state", "dead"), (ORDER, order)];
        Sorted::new("/list", &pairs, after, next).count(shown, "delivery", "deliveries")
    }

    #[test]
    fn the_number_of_entries_is_exact_only_on_a_single_page() {
        assert_eq!(sorted("", "", None, 1).summary, "1 delivery, newest first");
        let many = sorted("", "", Some("7"), 50);
        assert_eq!(many.summary, "more than 50 deliveries, newest first");
        assert_eq!(sorted("", "7", None, 7).summary, "older deliveries, newest first");
        assert_eq!(sorted("oldest", "7", None, 7).summary, "newer deliveries, oldest first");
    }

    #[test]
    fn the_links_keep_the_filter() {
        let first = sorted("", "", Some("7"), 50);
        assert_eq!(first.other, ("oldest first", "/list?state=dead&order=oldest".to_owned()));
        assert_eq!(first.next, Some(("Older", "/list?state=dead&after=7".to_owned())));
        assert_eq!(first.first, None);
        let later = sorted("oldest", "7", Some("9"), 50);
        assert_eq!(later.other, ("newest first", "/list?state=dead".to_owned()));
        assert_eq!(later.first, Some(("Oldest", "/list?state=dead&order=oldest".to_owned())));
        assert_eq!(later.next, Some(("Newer", "/list?state=dead&order=oldest&after=9".to_owned())));
        assert_eq!(Order::of("first"), Order::Newest, "an unknown order is the usual one");
    }
}
