//! The strict parser. It rejects duplicate keys, deep nesting and too many values, which
//! `serde_json` accepts.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::tree::{Node, OpenContainer, Tree};
use super::unstorable::{has_nul, is_too_large_float};

/// The maximum nesting of arrays and objects.
pub const MAX_DEPTH: usize = 64;
/// The maximum number of values and keys in a document. Each takes 16 bytes of memory, even a `0`.
pub const MAX_VALUES: usize = 1 << 20;
/// The number of keys above which a hash set looks for duplicates instead of a linear search.
const MAX_LINEAR_KEYS: usize = 32;
/// The maximum length of a key in an error message, in characters.
const MAX_QUOTED_CHARS: usize = 64;

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

/// A position in a body. Lines and columns count from one, columns in bytes.
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

/// Parses a body, and says whether it contains an unstorable value.
pub(super) fn parse(body: &[u8]) -> Result<(Tree, bool), ParseError> {
    let text = match std::str::from_utf8(body) {
        Ok(text) if text.trim_ascii().is_empty() => return Err(ParseError::Empty),
        Ok(text) if u32::try_from(text.len()).is_err() => return Err(ParseError::TooLong),
        Ok(text) => text,
        Err(error) => {
            return Err(ParseError::NotUtf8 { at: position_after(body, error.valid_up_to()) });
        }
    };
    let mut parser = Parser::new(text);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = NextValue { parser: &mut parser, depth: 0 }.deserialize(&mut deserializer);
    match parsed.and_then(|()| deserializer.end()) {
        Ok(()) => Ok((parser.tree, parser.has_unstorable)),
        Err(error) => Err(parser.into_error(&error)),
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

/// The state of one pass over a body.
struct Parser<'t> {
    text: &'t str,
    tree: Tree,
    has_unstorable: bool,
    /// The tree indexes of the keys of all open objects, outermost object first.
    keys: Vec<usize>,
    rejection: Option<Rejection>,
}

/// The reason why the pass stopped, when it is not a syntax error.
enum Rejection {
    DuplicateKey(String),
    TooDeep,
    TooMany,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Self {
        let tree = Tree::new(text);
        Self { text, tree, has_unstorable: false, keys: Vec::with_capacity(64), rejection: None }
    }

    /// Stops the pass. `serde_json` adds the position to the returned error.
    fn reject<E: serde::de::Error>(&mut self, rejection: Rejection) -> E {
        self.rejection = Some(rejection);
        E::custom("rejected")
    }

    fn into_error(self, error: &serde_json::Error) -> ParseError {
        let at = Position { line: error.line(), column: error.column() };
        match self.rejection {
            Some(Rejection::DuplicateKey(key)) => ParseError::DuplicateKey { key, at },
            Some(Rejection::TooDeep) => ParseError::TooDeep { at },
            Some(Rejection::TooMany) => ParseError::TooMany { at },
            None => {
                let message = error.to_string();
                let reason = message.strip_suffix(&format!(" at {at}")).unwrap_or(&message);
                ParseError::Syntax { reason: reason.to_owned(), at }
            }
        }
    }

    /// Fails when the tree already has the maximum number of values and keys.
    fn check_count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.tree.len() < MAX_VALUES { Ok(()) } else { Err(self.reject(Rejection::TooMany)) }
    }

    fn push<E: serde::de::Error>(&mut self, node: Node) -> Result<(), E> {
        self.check_count()?;
        self.tree.push(node);
        Ok(())
    }

    /// Adds a string that was written with escapes. Only such a string can contain a NUL.
    fn push_unescaped<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        self.check_count()?;
        self.has_unstorable |= has_nul(text);
        self.tree.push_unescaped(text);
        Ok(())
    }

    /// Adds a string without escapes, which is a slice of the body.
    fn push_slice<E: serde::de::Error>(&mut self, slice: &str) -> Result<(), E> {
        self.check_count()?;
        let start = slice.as_ptr().addr().wrapping_sub(self.text.as_ptr().addr());
        self.tree.push_slice(start, slice.len());
        Ok(())
    }

    /// Rejects the key that was pushed last if its object already has it. The keys of the object
    /// start at `first`; `seen` holds them once there are too many for a linear search.
    fn check_key<E: serde::de::Error>(
        &mut self,
        first: usize,
        seen: &mut HashSet<Box<str>>,
    ) -> Result<(), E> {
        let index = self.tree.len().saturating_sub(1);
        let key = self.tree.text(index);
        let others = self.keys.get(first..).unwrap_or_default();
        let is_duplicate = if others.len() < MAX_LINEAR_KEYS {
            others.iter().any(|other| self.tree.is_text(*other, key))
        } else {
            if seen.is_empty() {
                seen.extend(others.iter().map(|other| Box::from(self.tree.text(*other))));
            }
            !seen.insert(key.into())
        };
        if is_duplicate {
            let key = key.chars().take(MAX_QUOTED_CHARS).collect();
            return Err(self.reject(Rejection::DuplicateKey(key)));
        }
        self.keys.push(index);
        Ok(())
    }
}

/// A seed for the next value, `depth` containers below the root.
struct NextValue<'s, 't> {
    parser: &'s mut Parser<'t>,
    depth: usize,
}

impl<'t> NextValue<'_, 't> {
    fn open<E: serde::de::Error>(&mut self) -> Result<OpenContainer, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.parser.reject(Rejection::TooDeep));
        }
        self.parser.check_count()?;
        Ok(self.parser.tree.open())
    }

    fn child(&mut self) -> NextValue<'_, 't> {
        NextValue { parser: self.parser, depth: self.depth + 1 }
    }
}

impl<'de> DeserializeSeed<'de> for NextValue<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NextValue<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.parser.push(Node::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        self.parser.push(Node::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.parser.push(Node::Integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.parser.push(Node::Integer(value)),
            Err(_too_large) => {
                self.parser.has_unstorable = true;
                self.parser.push(Node::Unsigned(value))
            }
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.parser.has_unstorable |= is_too_large_float(value);
        if !value.is_finite() {
            return Err(E::custom("number is not finite"));
        }
        self.parser.push(Node::Float(value))
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, slice: &'de str) -> Result<(), E> {
        self.parser.push_slice(slice)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.parser.push_unescaped(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<(), A::Error> {
        let open = self.open()?;
        let mut length = 0;
        while sequence.next_element_seed(self.child())?.is_some() {
            length += 1;
        }
        self.parser.tree.close_array(open, length);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let open = self.open()?;
        let first = self.parser.keys.len();
        let mut seen = HashSet::new();
        while map.next_key_seed(self.child())?.is_some() {
            self.parser.check_key(first, &mut seen)?;
            map.next_value_seed(self.child())?;
        }
        let length = self.parser.keys.len() - first;
        self.parser.keys.truncate(first);
        self.parser.tree.close_object(open, length);
        Ok(())
    }
}
