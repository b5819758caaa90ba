//! Bytes to a value, refusing what plain parsing lets through: duplicate keys, deep nesting,
//! NUL characters and numbers that would lose digits.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::{Entry, Map};
use serde_json::{Number, Value};

use super::path::Path;
use super::report::{FieldError, Report};

/// Arrays and objects may be nested this deep.
pub const MAX_DEPTH: usize = 64;
/// The first magnitude past the signed 64-bit range.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
/// Keys are quoted in messages up to this many characters.
const QUOTED_CHARS: usize = 64;

/// A body that is not one unambiguous JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the body is empty")]
    Empty,
    #[error("the body is not UTF-8: invalid byte at {at}")]
    NotUtf8 { at: Position },
    #[error("the body is not JSON: {reason} at {at}")]
    Syntax { reason: String, at: Position },
    #[error("the key {key:?} appears twice in one object at {at}")]
    DuplicateKey { key: String, at: Position },
    #[error("the body is nested deeper than {MAX_DEPTH} levels at {at}")]
    TooDeep { at: Position },
}

/// A place in a body; both count from one, columns in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} column {}", self.line, self.column)
    }
}

/// The value, and whether [`report_taints`] would find anything in it.
pub(super) fn parse(body: &[u8]) -> Result<(Value, bool), Malformed> {
    let text = match std::str::from_utf8(body) {
        Ok(text) if text.trim_ascii().is_empty() => return Err(Malformed::Empty),
        Ok(text) => text,
        Err(error) => {
            return Err(Malformed::NotUtf8 { at: position_after(body, error.valid_up_to()) });
        }
    };
    let scan = Scan::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Node { scan: &scan, depth: 0 }
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| scan.refused(&error))?;
    Ok((value, scan.tainted.get()))
}

/// Reports every NUL character and every number outside the signed 64-bit range.
pub(super) fn report_taints(value: &Value, path: &Path<'_>, report: &Report) {
    match value {
        Value::String(text) if has_nul(text) => {
            report.add(FieldError::invalid(path.to_string(), "must not hold a NUL character"));
        }
        Value::Number(number) if !in_range(number) => {
            report.add(FieldError::invalid(path.to_string(), "is outside the 64-bit range"));
        }
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                report_taints(element, &Path::Index(path, index), report);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let path = Path::Key(path, key);
                if has_nul(key) {
                    let detail = "the key must not hold a NUL character";
                    report.add(FieldError::invalid(path.to_string(), detail));
                }
                report_taints(member, &path, report);
            }
        }
        _ => {}
    }
}

pub(super) fn is_tainted(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => has_nul(text),
        Value::Number(number) => !in_range(number),
        Value::Array(elements) => elements.iter().any(is_tainted),
        Value::Object(members) => {
            members.iter().any(|(key, value)| has_nul(key) || is_tainted(value))
        }
    }
}

pub(super) fn has_nul(text: &str) -> bool {
    text.as_bytes().contains(&0)
}

fn in_range(number: &Number) -> bool {
    number.is_i64() || number.as_f64().is_some_and(|number| number.abs() < TOO_LARGE)
}

fn position_after(body: &[u8], offset: usize) -> Position {
    let before = body.get(..offset).unwrap_or(body);
    let line_start =
        before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    Position {
        line: 1 + before.iter().filter(|byte| **byte == b'\n').count(),
        column: 1 + before.len() - line_start,
    }
}

/// What one pass over a body found besides its value.
#[derive(Default)]
struct Scan {
    refusal: RefCell<Option<Refusal>>,
    tainted: Cell<bool>,
}

enum Refusal {
    DuplicateKey(String),
    TooDeep,
}

impl Scan {
    /// Ends the pass; the parser adds the position.
    fn refuse<E: serde::de::Error>(&self, refusal: Refusal) -> E {
        self.refusal.replace(Some(refusal));
        E::custom("refused")
    }

    fn refused(&self, error: &serde_json::Error) -> Malformed {
        let at = Position { line: error.line(), column: error.column() };
        match self.refusal.take() {
            Some(Refusal::DuplicateKey(key)) => Malformed::DuplicateKey { key, at },
            Some(Refusal::TooDeep) => Malformed::TooDeep { at },
            None => {
                let message = error.to_string();
                let reason = message.strip_suffix(&format!(" at {at}")).unwrap_or(&message);
                Malformed::Syntax { reason: reason.to_owned(), at }
            }
        }
    }
}

/// One value of the document, `depth` containers below the root.
#[derive(Clone, Copy)]
struct Node<'a> {
    scan: &'a Scan,
    depth: usize,
}

impl Node<'_> {
    fn member<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.scan.refuse(Refusal::TooDeep));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }

    fn taint_if(self, tainted: bool) {
        if tainted {
            self.scan.tainted.set(true);
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.taint_if(i64::try_from(value).is_err());
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.taint_if(value.abs() >= TOO_LARGE);
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Value, E> {
        self.visit_string(text.to_owned())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        self.taint_if(has_nul(&text));
        Ok(Value::String(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let member = self.member()?;
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element_seed(member)? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let member = self.member()?;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            self.taint_if(has_nul(&key));
            match members.entry(key) {
                Entry::Vacant(place) => place.insert(map.next_value_seed(member)?),
                Entry::Occupied(taken) => {
                    let key = taken.key().chars().take(QUOTED_CHARS).collect();
                    return Err(self.scan.refuse(Refusal::DuplicateKey(key)));
                }
            };
        }
        Ok(Value::Object(members))
    }
}
