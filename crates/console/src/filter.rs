//! Filters of lists as data: the conditions, and their values as they stand in the URL.

use std::str::FromStr;

use askama::Template;
use chrono_tz::Tz;
use pages::form::Fields;

use crate::{
    SignedIn,
    record_list::{ORDER, Order, Sorted, query_string},
    time_field::{input_value, parse_time, rfc3339},
};

pub(crate) struct Condition {
    /// The name in the URL.
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: Kind,
    /// The name in the request. Without one the condition is not sent.
    parameter: Option<&'static str>,
    /// The value that the condition has without one, in the words of the API.
    default: &'static str,
}

/// The values of a choice with their names.
pub(crate) type Options = Vec<(&'static str, String)>;

pub(crate) enum Kind {
    /// The merchant, which only staff choose.
    Merchant,
    /// A text, with an example.
    Text(&'static str),
    /// A text, with an example and suggestions.
    Suggested(&'static str, &'static [&'static str]),
    /// A status code of HTTP, with an example.
    Status(&'static str),
    Choice(fn() -> Options),
    /// A time, with the error of a text that is none.
    Time(&'static str),
    /// An amount with up to two decimals, with the error of a text that is none. It is sent in cents.
    Amount(&'static str),
    /// A value that links set. The form keeps it.
    Hidden,
}

impl Condition {
    pub(crate) const MERCHANT: Self = Self::new("merchant", "Merchant", Kind::Merchant).not_sent();

    pub(crate) const fn new(name: &'static str, label: &'static str, kind: Kind) -> Self {
        Self { name, label, kind, parameter: Some(name), default: "" }
    }

    pub(crate) const fn text(name: &'static str, label: &'static str) -> Self {
        Self::new(name, label, Kind::Text(""))
    }

    pub(crate) const fn choice(
        name: &'static str,
        label: &'static str,
        options: fn() -> Options,
    ) -> Self {
        Self::new(name, label, Kind::Choice(options))
    }

    pub(crate) const fn sent_as(self, parameter: &'static str) -> Self {
        Self { parameter: Some(parameter), ..self }
    }

    pub(crate) const fn not_sent(self) -> Self {
        Self { parameter: None, ..self }
    }

    pub(crate) const fn with_default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// The value in a URL, which may name the default.
    fn read(&self, query: &Fields) -> String {
        let value = query.text(self.name);
        if value == self.default { String::new() } else { value.to_owned() }
    }

    /// Whether some values are not valid.
    fn is_checked(&self) -> bool {
        !matches!(self.kind, Kind::Merchant | Kind::Text(_) | Kind::Suggested(..) | Kind::Hidden)
    }

    pub(crate) fn is_time(&self) -> bool {
        matches!(self.kind, Kind::Time(_))
    }

    /// The reason why a value is not valid.
    fn error(&self, value: &str, zone: Tz) -> Option<&'static str> {
        let (is_valid, error) = match &self.kind {
            _ if value.is_empty() => return None,
            Kind::Choice(options) => {
                let is_known = options().iter().any(|(option, _)| *option == value);
                (is_known, "This value is not known. Choose another one.")
            }
            Kind::Status(_) => {
                let is_status = value.parse().is_ok_and(|code| (100..=999_u16).contains(&code));
                (is_status, "Write a status code with three digits, for example 503.")
            }
            Kind::Time(error) => (parse_time(value, zone).is_some(), *error),
            Kind::Amount(error) => (cents(value).is_some(), *error),
            Kind::Merchant | Kind::Text(_) | Kind::Suggested(..) | Kind::Hidden => return None,
        };
        (!is_valid).then_some(error)
    }
}

/// An amount in cents.
fn cents(text: &str) -> Option<i64> {
    let text = text.replace(',', ".");
    let (whole, fraction) = text.split_once('.').unwrap_or((text.as_str(), ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_amount =
        !whole.is_empty() && is_number(whole) && is_number(fraction) && fraction.len() <= 2;
    format!("{whole}{fraction:0<2}").parse().ok().filter(|_| is_amount)
}

/// The options of a choice, after "Any".
pub(crate) fn or_any(options: impl IntoIterator<Item = (&'static str, String)>) -> Options {
    [("", "Any".to_owned())].into_iter().chain(options).collect()
}

/// A condition that a link removes.
pub(crate) struct Chip {
    pub(crate) text: String,
    /// The list without this condition.
    pub(crate) url: String,
}

/// A filter with its values, as the fields of a form.
#[derive(Clone, Template)]
#[template(path = "filter.html")]
pub(crate) struct Filter {
    /// The URL of the list.
    pub(crate) path: String,
    conditions: &'static [Condition],
    /// One value for each condition.
    values: Vec<String>,
    /// The last record of the previous page.
    pub(crate) after: String,
    is_staff: bool,
    /// The zone of the times.
    zone: Tz,
    /// Whether the URL names the zone.
    names_zone: bool,
    /// The order, if the list has one.
    order: Option<Order>,
    errors: Vec<(&'static str, &'static str)>,
}

impl Filter {
    /// The filter of a URL. Spaces around values are easily copied along, so they do not count.
    pub(crate) fn read(
        signed_in: &SignedIn,
        path: impl Into<String>,
        conditions: &'static [Condition],
        query: &Fields,
    ) -> Self {
        let mut filter = Self {
            path: path.into(),
            conditions,
            values: conditions.iter().map(|it| it.read(query)).collect(),
            after: query.text("after").to_owned(),
            is_staff: signed_in.person.is_staff(),
            zone: signed_in.zone,
            names_zone: false,
            order: None,
            errors: Vec::new(),
        };
        filter.check();
        filter
    }

    fn check(&mut self) {
        let found = self.conditions.iter().zip(&self.values);
        let error =
            |(it, value): (&Condition, &String)| Some((it.name, it.error(value, self.zone)?));
        self.errors = found.filter_map(error).collect();
    }

    /// The filter of a list that can be sorted.
    pub(crate) fn with_order(self, query: &Fields) -> Self {
        Self { order: Some(Order::of(query.text(ORDER))), ..self }
    }

    /// The filter whose URL names the zone of its times. A link from a page with another zone means the same times.
    pub(crate) fn with_zone(mut self, query: &Fields) -> Self {
        let sent = query.text("zone").parse().unwrap_or(Tz::UTC);
        let times = self.conditions.iter().zip(&mut self.values);
        for (_, value) in times.filter(|(it, _)| sent != self.zone && it.is_time()) {
            *value = rfc3339(value, sent);
        }
        self.names_zone = true;
        self.check();
        self
    }

    pub(crate) fn order(&self) -> Order {
        self.order.unwrap_or(Order::Newest)
    }

    /// The summary of a page of the list (the number of entries shown and their order), and the links to the other
    /// order, the first page and the next page.
    pub(crate) fn sorted(
        &self,
        next: Option<&str>,
        shown: usize,
        (singular, plural): (&str, &str),
    ) -> Sorted {
        let sorted = Sorted::new(&self.path, &self.url_pairs(), &self.after, next);
        sorted.count(shown, singular, plural)
    }

    /// The filter of a page of one merchant, which has no field for the merchant.
    pub(crate) fn of_merchant(mut self, merchant: &str) -> Self {
        self.set("merchant", merchant);
        self.is_staff = false;
        self
    }

    /// Without a time range that can match, the second time has an error.
    pub(crate) fn with_time_order(mut self) -> Self {
        let time = |name| parse_time(self.value(name), self.zone);
        if time("from").zip(time("to")).is_some_and(|(from, to)| from >= to) {
            self.errors.push(("to", "This must be later than the start."));
        }
        self
    }

    pub(crate) fn value(&self, name: &str) -> &str {
        self.pairs().find(|(pair, _)| *pair == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        let found = self.conditions.iter().zip(&mut self.values).find(|(it, _)| it.name == name);
        if let Some((_, stored)) = found {
            value.clone_into(stored);
        }
        self.check();
    }

    /// Names and values in the URL.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.conditions.iter().map(|it| it.name).zip(self.values.iter().map(String::as_str))
    }

    /// Names and values in the URL, with the zone of times and the order.
    pub(crate) fn url_pairs(&self) -> Vec<(&'static str, &str)> {
        let has_time = self
            .conditions
            .iter()
            .zip(&self.values)
            .any(|(it, value)| it.is_time() && !value.is_empty());
        let zone = self.zone_name().filter(|_| has_time).map(|zone| ("zone", zone));
        let order = self.order.map(|order| (ORDER, order.value()));
        self.pairs().chain(zone).chain(order).collect()
    }

    /// The zone in the URL. Without one, times are in UTC.
    fn zone_name(&self) -> Option<&'static str> {
        (self.names_zone && self.zone != Tz::UTC).then(|| self.zone.name())
    }

    /// Whether every record matches, on the first page.
    pub(crate) fn is_empty(&self) -> bool {
        self.after.is_empty() && self.values.iter().all(String::is_empty)
    }

    /// The filter as the query of a URL, without the page.
    pub(crate) fn query(&self) -> String {
        query_string(&self.url_pairs())
    }

    /// The URL of the first page.
    pub(crate) fn url(&self) -> String {
        with_query(&self.path, &self.query())
    }

    /// The URL of the page after a record.
    pub(crate) fn next_url(&self, after: &str) -> String {
        let mut pairs = self.url_pairs();
        pairs.push(("after", after));
        with_query(&self.path, &query_string(&pairs))
    }

    /// The conditions, each with the list without it.
    pub(crate) fn chips(&self) -> Vec<Chip> {
        let chip = |(name, value): (&'static str, &str)| {
            let mut others = self.url_pairs();
            others.retain(|(other, _)| *other != name);
            Chip {
                text: format!("{}: {value}", crate::record_list::words(name)),
                url: with_query(&self.path, &query_string(&others)),
            }
        };
        let is_shown = |(condition, value): &(&Condition, &str)| {
            !value.is_empty() && !matches!(condition.kind, Kind::Hidden)
        };
        let shown = self.conditions.iter().zip(self.values.iter().map(String::as_str));
        shown.filter(is_shown).map(|(condition, value)| chip((condition.name, value))).collect()
    }

    /// The conditions as the services read them: times in RFC 3339.
    pub(crate) fn request(&self) -> Vec<(&'static str, String)> {
        let sent = |(condition, value): (&Condition, &String)| {
            let value = match condition.kind {
                Kind::Time(_) => rfc3339(value, self.zone),
                Kind::Amount(_) => cents(value).map_or(value.clone(), |cents| cents.to_string()),
                _ => value.clone(),
            };
            Some((condition.parameter?, value)).filter(|(_, value)| !value.is_empty())
        };
        self.conditions.iter().zip(&self.values).filter_map(sent).collect()
    }

    /// A cursor comes from a link. One that cannot be read leads to the first page.
    pub(crate) fn with_cursor_of<T: FromStr>(mut self) -> Self {
        if self.after.parse::<T>().is_err() {
            self.after.clear();
        }
        self
    }

    /// Removes the error of a condition.
    pub(crate) fn accept(&mut self, name: &str) {
        self.errors.retain(|(field, _)| *field != name);
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn error(&self, name: &str) -> Option<&'static str> {
        self.errors.iter().find(|(field, _)| *field == name).map(|(_, error)| *error)
    }

    /// The conditions that the person can set, with their values.
    fn fields(&self) -> impl Iterator<Item = (&Condition, &str)> {
        let fields = self.conditions.iter().zip(self.values.iter().map(String::as_str));
        fields.filter(|(it, _)| self.is_staff || !matches!(it.kind, Kind::Merchant))
    }

    /// A time as the value of its field.
    fn input_value(&self, value: &str) -> String {
        input_value(value, self.zone)
    }
}

fn with_query(path: &str, query: &str) -> String {
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests;
