//! Readers for [`Object::required`] and [`Object::optional`]: functions from [`Field`] to `Option`.

use std::fmt::Display;
use std::ops::RangeInclusive;

use chrono::{DateTime, Datelike, SubsecRound, Utc};
use iso_currency::Currency;
use serde::de::{self, DeserializeOwned, IntoDeserializer};
use serde_json::Value;

use super::field::{Field, Object};
use super::tree::JsonValue;
use super::unstorable::is_unstorable;
use crate::printable::is_printable;

/// Builds a struct of `Option`s that are all evaluated before the first `None` is returned, so that
/// every invalid field is reported. With `object =>`, the object has no other keys than the names of the
/// fields. The values behind a semicolon do not come from the object.
#[doc(hidden)]
#[macro_export]
macro_rules! read_fields {
    ($type:ident { $($field:ident: $value:expr),* $(,)? }) => {{
        let ($($field,)*) = ($($value,)*);
        Some($type { $($field: $field?),* })
    }};
    ($object:ident => $type:ident { $($field:ident: $value:expr),* $(,)? }) => {
        $crate::read_fields!($object => $type { $($field: $value),*; })
    };
    ($object:ident => $type:ident {
        $($field:ident: $value:expr),*; $($other:ident: $other_value:expr),* $(,)?
    }) => {{
        $object.reject_unknown(&[$(stringify!($field)),*]);
        let ($($field,)*) = ($($value,)*);
        Some($type { $($field: $field?,)* $($other: $other_value),* })
    }};
}
#[doc(inline)]
pub use read_fields;

/// A string whose length in characters is within the bounds.
pub fn text(chars: RangeInclusive<usize>) -> impl FnMut(Field<'_>) -> Option<String> {
    move |field| bounded(field, &chars).map(str::to_owned)
}

/// A text for pages and terminals, without characters that change how the text around them is shown.
pub fn printable_text(chars: RangeInclusive<usize>) -> impl FnMut(Field<'_>) -> Option<String> {
    parsed(chars, |text| match text.chars().all(is_printable) {
        true => Ok(text.to_owned()),
        false => Err("must not contain control or bidirectional characters"),
    })
}

/// A string that `parse` accepts. The error of `parse` becomes the detail.
pub fn parsed<T, E: Display>(
    chars: RangeInclusive<usize>,
    mut parse: impl FnMut(&str) -> Result<T, E>,
) -> impl FnMut(Field<'_>) -> Option<T> {
    move |field| match parse(bounded(field, &chars)?) {
        Ok(parsed) => Some(parsed),
        Err(error) => field.invalid(error.to_string()),
    }
}

/// One of a list of strings, each with its meaning.
pub fn one_of<T: Clone>(texts: &[(&str, T)]) -> impl FnMut(Field<'_>) -> Option<T> {
    move |field| {
        let JsonValue::String(text) = field.value() else { return field.wrong_type("a string") };
        match texts.iter().find(|(known, _)| *known == text) {
            Some((_, meaning)) => Some(meaning.clone()),
            None => {
                let known: Vec<_> = texts.iter().map(|(known, _)| *known).collect();
                field.invalid(format!("must be one of {}", known.join(", ")))
            }
        }
    }
}

/// A string that names a variant of `T`, as serde writes it.
pub fn variant<T: DeserializeOwned>(field: Field<'_>) -> Option<T> {
    let JsonValue::String(text) = field.value() else { return field.wrong_type("a string") };
    match T::deserialize(text.into_deserializer()) {
        Ok(variant) => Some(variant),
        Err(VariantError(detail)) => field.invalid(detail),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct VariantError(String);

impl de::Error for VariantError {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(format!("must be one of {}", expected.join(", ")))
    }
}

/// An integer within the bounds. `1.0` and `1e0` are integers too, as in JSON Schema.
pub fn integer<T>(range: RangeInclusive<T>) -> impl FnMut(Field<'_>) -> Option<T>
where
    T: Copy + Display + PartialOrd + TryFrom<i64>,
{
    move |field| {
        let integer = match field.value() {
            JsonValue::Integer(integer) => Some(integer),
            JsonValue::Float(float) => whole(float),
            _ => None,
        };
        let Some(integer) = integer else { return field.wrong_type("an integer") };
        let within = T::try_from(integer).ok().filter(|integer| range.contains(integer));
        within.or_else(|| field.invalid(outside(&range)))
    }
}

/// The integer that a float is equal to, if any.
pub(super) fn whole(float: f64) -> Option<i64> {
    // A float without a fraction is printed without a point and without an exponent.
    (float.fract() == 0.0).then(|| float.to_string().parse().ok())?
}

/// A number within the bounds.
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

/// An RFC 3339 time with an offset, truncated to microseconds like a PostgreSQL timestamp.
pub fn timestamp(field: Field<'_>) -> Option<DateTime<Utc>> {
    let JsonValue::String(text) = field.value() else { return field.wrong_type("a string") };
    let time = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc().trunc_subsecs(6));
    match time {
        // The conversion to UTC can leave the four-digit years.
        Ok(time) if is_strict(text) && (1..=9999).contains(&time.year()) => Some(time),
        _ => field.invalid("must be an RFC 3339 time with an offset, like 2026-03-01T09:30:00Z"),
    }
}

/// Rejects three forms that `chrono` accepts: a space for the `T`, a non-ASCII minus sign, and second
/// 60 in any minute. PostgreSQL turns a leap second into the next second.
fn is_strict(time: &str) -> bool {
    let has_t = matches!(time.as_bytes().get(10), Some(b'T' | b't'));
    time.is_ascii() && has_t && time.get(17..19) != Some("60")
}

/// An ISO 4217 code in upper case.
pub fn currency(field: Field<'_>) -> Option<Currency> {
    let JsonValue::String(code) = field.value() else { return field.wrong_type("a string") };
    match Currency::from_code(code) {
        Some(currency) => Some(currency),
        None => field.invalid("must be an ISO 4217 currency code, like USD"),
    }
}

/// An array whose length is within the bounds. One error reports a wrong length.
pub fn array<T>(
    length: RangeInclusive<usize>,
    mut element: impl FnMut(Field<'_>) -> Option<T>,
) -> impl FnMut(Field<'_>) -> Option<Vec<T>> {
    move |field| {
        let JsonValue::Array(values) = field.value() else { return field.wrong_type("an array") };
        if !length.contains(&values.len()) {
            return field.invalid(format!("must have {}", counted(&length, "element")));
        }
        // A short-circuiting collect would hide the errors of later elements.
        let mut elements = Vec::with_capacity(values.len());
        for (index, value) in values.iter().enumerate() {
            elements.extend(field.element(index, value, &mut element));
        }
        (elements.len() == values.len()).then_some(elements)
    }
}

/// An object that `read` turns into a value.
pub fn object<T>(
    mut read: impl FnMut(&Object<'_>) -> Option<T>,
) -> impl FnMut(Field<'_>) -> Option<T> {
    move |field| match field.as_object() {
        Some(object) => read(&object),
        None => field.wrong_type("an object"),
    }
}

pub fn any(field: Field<'_>) -> Option<Value> {
    Some(field.value().to_value())
}

fn bounded<'a>(field: Field<'a>, chars: &RangeInclusive<usize>) -> Option<&'a str> {
    let JsonValue::String(text) = field.value() else { return field.wrong_type("a string") };
    if is_unstorable(field.value()) {
        return None;
    }
    // A string never has more characters than bytes, so the common case counts nothing.
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
        (0, max) => format!("at most {max} {noun}s"),
        (min, max) if min == max => format!("exactly {max} {noun}s"),
        (min, max) => format!("{min} to {max} {noun}s"),
    }
}
