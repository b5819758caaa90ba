//! Bytes to a value, refusing what plain parsing lets through: duplicate keys, deep nesting,
//! NUL characters and numbers that would lose digits.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::errors::{FieldError, Report};
use super::path::Path;
use super::tree::{JsonValue, Node, Open, Tree};

/// Arrays and objects may be nested this deep.
pub const MAX_DEPTH: usize = 64;
/// So many values and keys may be in a document, whatever its size: each takes a place in memory.
pub const MAX_VALUES: usize = 1 << 20;
/// Up to here an object's keys are compared one by one.
const FEW_KEYS: usize = 32;
/// The first magnitude past the signed 64-bit range.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
/// Keys are quoted in messages up to this many characters.
const QUOTED_CHARS: usize = 64;

/// A body that is not one unambiguous JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
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
    #[error("the body is longer than 4 GiB")]
    TooLong,
    #[error("the body has more than {MAX_VALUES} values and keys at {at}")]
    TooMany { at: Position },
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

/// The document, and whether [`report_unstorable`] would find anything in it.
pub(super) fn parse(body: &[u8]) -> Result<(Tree, bool), ParseError> {
    let text = match std::str::from_utf8(body) {
        Ok(text) if text.trim_ascii().is_empty() => return Err(ParseError::Empty),
        Ok(text) if u32::try_from(text.len()).is_err() => return Err(ParseError::TooLong),
        Ok(text) => text,
        Err(error) => {
            return Err(ParseError::NotUtf8 { at: position_after(body, error.valid_up_to()) });
        }
    };
    let mut scan = Scan::new(text);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Reading { scan: &mut scan, depth: 0 }.deserialize(&mut deserializer);
    match read.and_then(|()| deserializer.end()) {
        Ok(()) => Ok((scan.tree, scan.has_unstorable)),
        Err(error) => Err(scan.refused(&error)),
    }
}

/// Reports every NUL character and every number outside the signed 64-bit range.
pub(super) fn report_unstorable(value: JsonValue<'_>, path: &Path<'_>, report: &Report) {
    match value {
        JsonValue::String(text) if has_nul(text) => {
            report.add(FieldError::invalid(path.to_string(), "must not hold a NUL character"));
        }
        _ if is_too_large(value) => {
            report.add(FieldError::invalid(path.to_string(), "is outside the 64-bit range"));
        }
        JsonValue::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                report_unstorable(element, &Path::Index(path, index), report);
            }
        }
        JsonValue::Object(members) => {
            for (key, member) in members.iter() {
                let path = Path::Key(path, key);
                if has_nul(key) {
                    let detail = "the key must not hold a NUL character";
                    report.add(FieldError::invalid(path.to_string(), detail));
                    // The same field again.
                    if is_unstorable(member) {
                        continue;
                    }
                }
                report_unstorable(member, &path, report);
            }
        }
        _ => {}
    }
}

pub(super) fn has_unstorable(value: JsonValue<'_>) -> bool {
    match value {
        JsonValue::Array(elements) => elements.iter().any(has_unstorable),
        JsonValue::Object(members) => {
            members.iter().any(|(key, value)| has_nul(key) || has_unstorable(value))
        }
        _ => is_unstorable(value),
    }
}

/// Whether this value itself is what [`report_unstorable`] reports.
pub(super) fn is_unstorable(value: JsonValue<'_>) -> bool {
    match value {
        JsonValue::String(text) => has_nul(text),
        _ => is_too_large(value),
    }
}

fn has_nul(text: &str) -> bool {
    text.as_bytes().contains(&0)
}

fn is_too_large(value: JsonValue<'_>) -> bool {
    match value {
        JsonValue::Large(_) => true,
        JsonValue::Fraction(fraction) => fraction.abs() >= TOO_LARGE,
        _ => false,
    }
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

/// What one pass over a body has found.
struct Scan<'t> {
    text: &'t str,
    tree: Tree,
    has_unstorable: bool,
    /// Where the keys of the objects under way are, those of the outermost first.
    keys: Vec<usize>,
    refusal: Option<Refusal>,
}

enum Refusal {
    DuplicateKey(String),
    TooDeep,
    TooMany,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        let tree = Tree::new(text);
        Self { text, tree, has_unstorable: false, keys: Vec::with_capacity(64), refusal: None }
    }

    /// Ends the pass; the parser adds the position.
    fn refuse<E: serde::de::Error>(&mut self, refusal: Refusal) -> E {
        self.refusal = Some(refusal);
        E::custom("refused")
    }

    fn refused(self, error: &serde_json::Error) -> ParseError {
        let at = Position { line: error.line(), column: error.column() };
        match self.refusal {
            Some(Refusal::DuplicateKey(key)) => ParseError::DuplicateKey { key, at },
            Some(Refusal::TooDeep) => ParseError::TooDeep { at },
            Some(Refusal::TooMany) => ParseError::TooMany { at },
            None => {
                let message = error.to_string();
                let reason = message.strip_suffix(&format!(" at {at}")).unwrap_or(&message);
                ParseError::Syntax { reason: reason.to_owned(), at }
            }
        }
    }

    /// MemoryPermit for one more value or key.
    fn count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.tree.len() < MAX_VALUES { Ok(()) } else { Err(self.refuse(Refusal::TooMany)) }
    }

    fn push<E: serde::de::Error>(&mut self, node: Node) -> Result<(), E> {
        self.count()?;
        self.tree.push(node);
        Ok(())
    }

    fn push_text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        self.count()?;
        self.has_unstorable |= has_nul(text);
        self.tree.push_unescaped(text);
        Ok(())
    }

    /// A string without escapes: it is a part of the body.
    fn push_part<E: serde::de::Error>(&mut self, part: &str) -> Result<(), E> {
        self.count()?;
        let start = part.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        self.tree.push_plain(start, part.len());
        Ok(())
    }

    /// Takes note of the key that was just pushed, as one of the object whose keys start at
    /// `first`. `many` helps once there are too many to look at each.
    fn enter_key<E: serde::de::Error>(
        &mut self,
        first: usize,
        many: &mut HashSet<Box<str>>,
    ) -> Result<(), E> {
        let at = self.tree.len().saturating_sub(1);
        let key = self.tree.text(at);
        let others = self.keys.get(first..).unwrap_or_default();
        let known = if others.len() < FEW_KEYS {
            others.iter().any(|other| self.tree.is_text(*other, key))
        } else {
            if many.is_empty() {
                many.extend(others.iter().map(|other| Box::from(self.tree.text(*other))));
            }
            !many.insert(key.into())
        };
        if known {
            let key = key.chars().take(QUOTED_CHARS).collect();
            return Err(self.refuse(Refusal::DuplicateKey(key)));
        }
        self.keys.push(at);
        Ok(())
    }
}

/// The value that comes next, `depth` containers below the root.
struct Reading<'s, 't> {
    scan: &'s mut Scan<'t>,
    depth: usize,
}

impl<'t> Reading<'_, 't> {
    fn enter<E: serde::de::Error>(&mut self) -> Result<Open, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.scan.refuse(Refusal::TooDeep));
        }
        self.scan.count()?;
        Ok(self.scan.tree.open())
    }

    fn member(&mut self) -> Reading<'_, 't> {
        Reading { scan: self.scan, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for Reading<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.scan.push(Node::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.scan.push(Node::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.scan.push(Node::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.scan.push(Node::Integer(value)),
            Err(_too_large) => {
                self.scan.has_unstorable = true;
                self.scan.push(Node::Large(value))
            }
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.scan.has_unstorable |= value.abs() >= TOO_LARGE;
        if !value.is_finite() {
            return Err(E::custom("number is not finite"));
        }
        self.scan.push(Node::Fraction(value))
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, part: &'de str) -> Result<(), E> {
        self.scan.push_part(part)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.scan.push_text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        let open = self.enter()?;
        let mut length = 0;
        while sequence.next_element_seed(self.member())?.is_some() {
            length += 1;
        }
        self.scan.tree.close_array(open, length);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let open = self.enter()?;
        let (first, mut many) = (self.scan.keys.len(), HashSet::new());
        while map.next_key_seed(self.member())?.is_some() {
            self.scan.enter_key(first, &mut many)?;
            map.next_value_seed(self.member())?;
        }
        let length = self.scan.keys.len() - first;
        self.scan.keys.truncate(first);
        self.scan.tree.close_object(open, length);
        Ok(())
    }
}
