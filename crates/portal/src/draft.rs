//! The choices of a return that is not confirmed yet. They are in the query of every page's URL, so that
//! Back, reload and a second tab work, and nothing is stored.
//!
//! The query repeats `i=ORDER~LINE~COUNT~REASON~RESOLUTION~VARIANT`, with each part percent-encoded and
//! the later parts empty until the shopper chose, and has `method=`. No part names the shopper. The choices of
//! a long order are compressed into one parameter `z`, so that they fit into a URL too.

mod compressed;

use std::future::{Ready, ready};

use actix_web::{FromRequest, HttpRequest, dev::Payload};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use crate::{error::PageError, page, visit::Visit};

/// The units of a line of an order have at most this number.
const MAX_COUNT: u32 = 1000;
pub(crate) const MAX_CHOICES: usize = 200;
/// Longer queries do not go into a URL, because some proxies reject it. Forms send them in their bodies.
pub(crate) const MAX_QUERY_BYTES: usize = 6 * 1024;
/// Longer choices are compressed.
const MAX_PLAIN_BYTES: usize = 1024;
/// The length of the longest identifier.
const MAX_PART_BYTES: usize = 1024;

/// The shopper's choices. Handlers can take it as an argument; a query that cannot be read is a
/// [`PageError::BadForm`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReturnDraft {
    pub(crate) choices: Vec<Choice>,
    /// `mail-back`, `express-returns` or `customer-keep`.
    pub(crate) method: Option<String>,
}

/// The choice for some units of one line of an order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) order: String,
    pub(crate) line: String,
    /// The number of units to return, at least one.
    pub(crate) count: u32,
    /// The code of the reason; empty until chosen.
    pub(crate) reason: String,
    pub(crate) resolution: Option<Resolution>,
    /// The variant that the shopper gets in an exchange; empty without one.
    pub(crate) variant: String,
}

/// The resolution for a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolution {
    Refund,
    Exchange,
    GiftCard,
}

impl Resolution {
    pub(crate) const ALL: [Self; 3] = [Self::Refund, Self::Exchange, Self::GiftCard];

    /// The value in forms and URLs.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Exchange => "exchange",
            Self::GiftCard => "gift_card",
        }
    }

    pub(crate) fn from_value(value: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resolution| resolution.value() == value)
    }
}

impl Choice {
    /// Reads the value of one `i` parameter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parts: Option<Vec<String>> = text.split('~').map(decode).collect();
        let mut parts = parts.filter(|parts| parts.len() <= 6)?.into_iter();
        let order = parts.next()?;
        let line = parts.next()?;
        let count = parts.next()?.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count))?;
        let mut next = || parts.next().unwrap_or_default();
        let (reason, resolution, variant) = (next(), next(), next());
        let resolution = match resolution.as_str() {
            "" => None,
            value => Some(Resolution::from_value(value)?),
        };
        let is_named = !order.is_empty() && !line.is_empty();
        is_named.then_some(Self { order, line, count, reason, resolution, variant })
    }

    /// The value of the `i` parameter, also as the `value` of a form field.
    pub(crate) fn value(&self) -> String {
        let count = self.count.to_string();
        let resolution = self.resolution.map_or("", Resolution::value);
        let parts = [&self.order, &self.line, &count, &self.reason, resolution, &self.variant];
        let text: Vec<String> = parts.iter().map(|part| encode(part)).collect();
        text.join("~").trim_end_matches('~').to_owned()
    }

    /// Whether both choices are about the same line.
    pub(crate) fn is_same_line(&self, order: &str, line: &str) -> bool {
        self.order == order && self.line == line
    }
}

/// The name of a line in the names of form fields.
pub(crate) fn line_key(order: &str, line: &str) -> String {
    format!("{}~{}", encode(order), encode(line))
}

fn encode(part: &str) -> String {
    utf8_percent_encode(part, NON_ALPHANUMERIC).to_string().replace("%2D", "-").replace("%5F", "_")
}

fn decode(part: &str) -> Option<String> {
    let text = percent_decode_str(part).decode_utf8().ok()?;
    (text.len() <= MAX_PART_BYTES && !text.contains('\0')).then(|| text.into_owned())
}

impl ReturnDraft {
    /// Reads the choices of a query string or of a form's body. Other parameters are ignored.
    pub(crate) fn parse(query: &str) -> Option<Self> {
        let mut draft = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match name.as_ref() {
                "i" => draft.choices.push(Choice::parse(&value)?),
                compressed::NAME => draft.choices.extend(compressed::read(&value)?),
                "method" if !value.is_empty() => draft.method = Some(value.into_owned()),
                _ => {}
            }
        }
        let mut lines: Vec<_> = draft.choices.iter().map(|c| (&c.order, &c.line)).collect();
        lines.sort_unstable();
        let is_distinct = lines.windows(2).all(|pair| pair.first() != pair.last());
        (is_distinct && lines.len() <= MAX_CHOICES).then_some(draft)
    }

    /// The choice for a line, if the shopper returns units of it.
    pub(crate) fn choice(&self, order: &str, line: &str) -> Option<&Choice> {
        self.choices.iter().find(|choice| choice.is_same_line(order, line))
    }

    /// A digest of the chosen lines, whatever their counts, reasons and resolutions.
    pub(crate) fn digest(&self) -> u64 {
        let mut lines: Vec<_> =
            self.choices.iter().map(|choice| line_key(&choice.order, &choice.line)).collect();
        lines.sort_unstable();
        page::digest(&lines.join("&"))
    }

    /// The parameters as form fields: name and value. A form with them as hidden fields keeps the choices.
    pub(crate) fn fields(&self) -> Vec<(&'static str, String)> {
        let method = self.method.iter().map(|method| ("method", method.clone()));
        let values: Vec<_> = self.choices.iter().map(Choice::value).collect();
        let bytes: usize = values.iter().map(String::len).sum();
        if bytes > MAX_PLAIN_BYTES
            && let Some(compressed) = compressed::write(&values)
        {
            return [(compressed::NAME, compressed)].into_iter().chain(method).collect();
        }
        values.into_iter().map(|value| ("i", value)).chain(method).collect()
    }

    pub(crate) fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.fields()).finish()
    }

    /// Whether the choices do not fit into a URL.
    pub(crate) fn is_long(&self) -> bool {
        self.query().len() > MAX_QUERY_BYTES
    }

    /// The URL of a page with these choices: `url(&visit, "/resolution")`.
    pub(crate) fn url(&self, visit: &Visit, path: &str) -> String {
        let query = self.query();
        let separator = if query.is_empty() { "" } else { "?" };
        format!("{}{separator}{query}", visit.url(path))
    }
}

impl FromRequest for ReturnDraft {
    type Error = PageError;
    type Future = Ready<Result<Self, PageError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Self::parse(request.query_string()).ok_or(PageError::BadForm))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_of_the_lines_alone() {
        let digest = |query| ReturnDraft::parse(query).unwrap().digest();
        let one = digest("i=A-1~5~1~SMALL");
        assert_eq!(digest("i=A-1~5~2~LARGE~refund&method=mail-back"), one);
        assert_ne!(digest("i=A-1~4~1~SMALL"), one);
        assert_ne!(digest("i=A-1~5~1&i=A-1~4~1"), one);
        assert_eq!(digest("i=A-1~5~1&i=A-1~4~1"), digest("i=A-1~4~1&i=A-1~5~1"));
    }

    fn choice(order: &str, line: &str) -> Choice {
        Choice {
            order: order.to_owned(),
            line: line.to_owned(),
            count: 2,
            reason: "TOO_SMALL".to_owned(),
            resolution: Some(Resolution::Exchange),
            variant: "SKU~1 ä/+&=%".to_owned(),
        }
    }

    #[test]
    fn choices_come_back_as_they_were_written() {
        let new =
            Choice { count: 1, order: "A~1".to_owned(), line: "1".to_owned(), ..Choice::default() };
        let choices = vec![choice("A-1", "10"), choice("A-1", "ü 11"), new];
        let draft = ReturnDraft { choices, method: Some("mail-back".to_owned()) };
        assert_eq!(ReturnDraft::parse(&draft.query()), Some(draft.clone()));
        let form = draft.fields().into_iter().map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(form.last().map(String::as_str), Some("mail-back"));
        assert_eq!(draft.choice("A~1", "1").unwrap().value(), "A%7E1~1~1");
        assert_eq!(draft.choice("A-1", "12"), None);
    }

    #[test]
    fn the_choices_of_a_long_order_fit_into_a_url() {
        let line =
            |number: usize| choice("D-MWLPVBXF-1", &(77_823_651_000 + 7919 * number).to_string());
        let choices: Vec<_> = (0..120).map(line).collect();
        let draft = ReturnDraft { choices, method: Some("mail-back".to_owned()) };
        assert!(!draft.is_long(), "{} bytes", draft.query().len());
        assert_eq!(ReturnDraft::parse(&draft.query()), Some(draft.clone()));
        let twice = format!("{}&i={}", draft.query(), draft.choices.first().unwrap().value());
        assert_eq!(ReturnDraft::parse(&twice), None, "a line has one choice");
    }

    #[test]
    fn other_parameters_are_ignored() {
        let draft = ReturnDraft::parse("lang=de&i=A-1~10~1&method=&x").unwrap();
        assert_eq!((draft.choices.len(), draft.method), (1, None));
        assert_eq!(ReturnDraft::parse(""), Some(ReturnDraft::default()));
    }

    #[test]
    fn choices_that_no_page_writes_are_rejected() {
        for bad in [
            "i=",
            "i=A",
            "i=A~1",
            "i=A~1~0",
            "i=A~1~1001",
            "i=A~1~x",
            "i=~1~1",
            "i=A~~1",
            "i=A~1~1~R~steal",
            "i=A~1~1~R~refund~V~more",
            "i=A~1~1&i=A~1~2",
            "i=A~%25FF~1",
            "i=A%2500~1~1",
        ] {
            assert_eq!(ReturnDraft::parse(bad), None, "{bad}");
        }
        let many: Vec<_> = (0..=MAX_CHOICES).map(|line| format!("i=A~{line}~1")).collect();
        assert_eq!(ReturnDraft::parse(&many.join("&")), None);
    }
}
