//! The kinds a field can be of. Each is a function from [`Field`] to `Option`, ready to be handed
//! to [`Object::required`] and [`Object::optional`]; a kind of your own is one more such function.

use std::fmt::Display;
use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike, SubsecRound, Utc};
use iso_currency::Currency;
use serde_json::Value;

use super::field::{Field, Object};
use super::parser::is_unstorable;
use super::tree::JsonValue;

/// A string of so many characters.
pub fn text(chars: RangeInclusive<usize>) -> impl FnMut(Field<'_>) -> Option<String> {
    move |field| bounded(field, &chars).map(str::to_owned)
}

/// A string of so many characters that `parse` understands; its error becomes the detail.
pub fn parsed<T, E: Display>(
    chars: RangeInclusive<usize>,
    mut parse: impl FnMut(&str) -> Result<T, E>,
) -> impl FnMut(Field<'_>) -> Option<T> {
    move |field| match parse(bounded(field, &chars)?) {
        Ok(parsed) => Some(parsed),
        Err(error) => field.invalid(error.to_string()),
    }
}

/// One of a few words.
pub fn one_of<T: Clone>(words: &[(&str, T)]) -> impl FnMut(Field<'_>) -> Option<T> {
    move |field| {
        let JsonValue::String(text) = field.value() else { return field.wrong_type("a string") };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Some(meaning.clone()),
            None => {
                let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                field.invalid(format!("must be one of {}", words.join(", ")))
            }
        }
    }
}

/// An integer between two bounds. Also one written with a point or an exponent, like `1.0`: to JSON
/// Schema that is the same number.
pub fn integer(range: RangeInclusive<i64>) -> impl FnMut(Field<'_>) -> Option<i64> {
    move |field| {
        let integer = match field.value() {
            JsonValue::Integer(integer) => Some(integer),
            JsonValue::Large(_) => None,
            JsonValue::Fraction(fraction) => match whole(fraction) {
                None => return field.wrong_type("an integer"),
                integer => integer,
            },
            _ => return field.wrong_type("an integer"),
        };
        match integer {
            Some(integer) if range.contains(&integer) => Some(integer),
            _ => field.invalid(outside(&range)),
        }
    }
}

/// A number that was written as a fraction and is none.
pub(super) fn whole(fraction: f64) -> Option<i64> {
    // What has no fraction is printed without a point, and never with an exponent.
    (fraction.fract() == 0.0).then(|| fraction.to_string().parse().ok())?
}

/// A number between two bounds, fractions allowed.
pub fn number(range: RangeInclusive<f64>) -> impl FnMut(Field<'_>) -> Option<f64> {
    move |field| match field.value().as_number().and_then(|number| number.as_f64()) {
        Some(number) if range.contains(&number) => Some(number),
        Some(_) => field.invalid(outside(&range)),
        None => field.wrong_type("a number"),
    }
}

pub fn boolean(field: Field<'_>) -> Option<bool> {
    match field.value() {
        JsonValue::Bool(boolean) => Some(boolean),
        _ => field.wrong_type("a boolean"),
    }
}

/// An RFC 3339 time with its offset, to the microsecond: what the database keeps.
pub fn timestamp(field: Field<'_>) -> Option<DateTime<Utc>> {
    let JsonValue::String(text) = field.value() else { return field.wrong_type("a string") };
    let time = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc().trunc_subsecs(6));
    match time {
        // A time near either end can leave the four-digit years when its offset is taken off.
        Ok(time) if is_strict(text) && (1..=9999).contains(&time.year()) => Some(time),
        _ => field.invalid("must be an RFC 3339 time with an offset, like 2026-03-01T09:30:00Z"),
    }
}

/// The library also takes a space for the `T`, a minus sign that is not ASCII, and second 60 in any
/// minute. A true leap second is not kept either: the database makes the next second of it.
fn is_strict(time: &str) -> bool {
    let has_t = matches!(time.as_bytes().get(10), Some(b'T' | b't'));
    time.is_ascii() && has_t && time.get(17..19) != Some("60")
}

/// An ISO 4217 code in capitals.
pub fn currency(field: Field<'_>) -> Option<Currency> {
    let JsonValue::String(code) = field.value() else { return field.wrong_type("a string") };
    match Currency::from_code(code) {
        Some(currency) => Some(currency),
        None => field.invalid("must be an ISO 4217 currency code, like USD"),
    }
}

/// An array of so many elements; one that is too long is reported as a whole.
pub fn array<T>(
    length: RangeInclusive<usize>,
    mut element: impl FnMut(Field<'_>) -> Option<T>,
) -> impl FnMut(Field<'_>) -> Option<Vec<T>> {
    move |field| {
        let JsonValue::Array(values) = field.value() else { return field.wrong_type("an array") };
        if !length.contains(&values.len()) {
            return field.invalid(format!("must have {}", counted(&length, "element")));
        }
        // Not a short-circuiting collect: every element gets its chance to fail.
        let mut elements = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            elements.extend(field.element(index, value, &mut element));
        }
        (elements.len() == values.len()).then_some(elements)
    }
}

/// An object that `read` understands.
pub fn object<T>(
    mut read: impl FnMut(&Object<'_>) -> Option<T>,
) -> impl FnMut(Field<'_>) -> Option<T> {
    move |field| match field.as_object() {
        Some(object) => read(&object),
        None => field.wrong_type("an object"),
    }
}

/// Anything, as it is.
pub fn any(field: Field<'_>) -> Option<Value> {
    Some(field.value().to_value())
}

fn bounded<'a>(field: Field<'a>, chars: &RangeInclusive<usize>) -> Option<&'a str> {
    let JsonValue::String(text) = field.value() else { return field.wrong_type("a string") };
    if is_unstorable(field.value()) {
        return None;
    }
    // Bytes bound characters from above: the common case counts nothing.
    if (*chars.start() <= 1 && text.len() <= *chars.end() && text.len() >= *chars.start())
        || chars.contains(&text.chars().count())
    {
        return Some(text);
    }
    field.invalid(format!("must have {}", counted(chars, "character")))
}

fn outside<T: Display>(range: &RangeInclusive<T>) -> String {
    format!("must be between {} and {}", range.start(), range.end())
}

fn counted(range: &RangeInclusive<usize>, noun: &str) -> String {
    match (range.start(), range.end()) {
        (0, most) => format!("at most {most} {noun}s"),
        (least, most) if least == most => format!("exactly {most} {noun}s"),
        (least, most) => format!("{least} to {most} {noun}s"),
    }
}
