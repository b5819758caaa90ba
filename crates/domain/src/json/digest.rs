//! A hash that is equal for equal JSON values.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::document::Document;
use super::readers::whole;
use super::tree::JsonValue;

/// A SHA-256 hash of a JSON value. The order of keys, whitespace and the notation of numbers (`1` or
/// `1.0`) make no difference.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(value: JsonValue<'_>) -> Self {
        // One long update is much cheaper than hundreds of short updates.
        let mut writer =
            Writer { bytes: Vec::with_capacity(4096), members: Vec::with_capacity(64) };
        writer.write(value);
        Self(Sha256::digest(&writer.bytes).into())
    }

    /// The hash of an object without the member with this key.
    pub fn without(value: JsonValue<'_>, key: &str) -> Self {
        let JsonValue::Object(members) = value else { return Self::of(value) };
        let mut writer = Writer { bytes: Vec::new(), members: Vec::new() };
        writer.write_members(members.iter().filter(|(name, _)| *name != key));
        Self(Sha256::digest(&writer.bytes).into())
    }

    pub fn of_value(value: &Value) -> Self {
        Self::of(Document::from(value).value())
    }

    /// The hash of a text, for identifiers that are only compared.
    pub fn of_text(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl TryFrom<&[u8]> for Digest {
    type Error = std::array::TryFromSliceError;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        bytes.try_into().map(Self)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "Digest({a:02x}{b:02x}{c:02x}{d:02x}…)")
    }
}

struct Writer<'a> {
    bytes: Vec<u8>,
    /// The members of all open objects that are not written yet, sorted by key within an object.
    members: Vec<(&'a str, JsonValue<'a>)>,
}

impl<'a> Writer<'a> {
    /// Writes the type and, for variable lengths, the length before each value, so that different
    /// values have different encodings.
    fn write(&mut self, value: JsonValue<'a>) {
        match value {
            JsonValue::Null => self.bytes.push(b'n'),
            JsonValue::Bool(true) => self.bytes.push(b't'),
            JsonValue::Bool(false) => self.bytes.push(b'f'),
            JsonValue::Integer(integer) => {
                self.bytes.push(b'i');
                self.bytes.extend_from_slice(&integer.to_le_bytes());
            }
            JsonValue::Unsigned(unsigned) => {
                self.bytes.push(b'u');
                self.bytes.extend_from_slice(&unsigned.to_le_bytes());
            }
            JsonValue::Float(float) => match whole(float) {
                Some(integer) => self.write(JsonValue::Integer(integer)),
                None => {
                    self.bytes.push(b'd');
                    self.bytes.extend_from_slice(&float.to_le_bytes());
                }
            },
            JsonValue::String(text) => {
                self.bytes.push(b's');
                self.write_text(text);
            }
            JsonValue::Array(elements) => {
                self.bytes.push(b'a');
                self.bytes.extend_from_slice(&elements.len().to_le_bytes());
                elements.iter().for_each(|element| self.write(element));
            }
            JsonValue::Object(members) => self.write_members(members.iter()),
        }
    }

    fn write_members(&mut self, members: impl Iterator<Item = (&'a str, JsonValue<'a>)>) {
        let first = self.members.len();
        self.members.extend(members);
        self.bytes.push(b'o');
        self.bytes.extend_from_slice(&(self.members.len() - first).to_le_bytes());
        // Descending, because members are popped from the end. Reversing first makes the sort cheap for
        // senders that sort their keys.
        if let Some(own) = self.members.get_mut(first..) {
            own.reverse();
            own.sort_unstable_by(|(one, _), (other, _)| other.cmp(one));
        }
        while self.members.len() > first
            && let Some((key, member)) = self.members.pop()
        {
            self.write_text(key);
            self.write(member);
        }
    }

    fn write_text(&mut self, text: &str) {
        self.bytes.extend_from_slice(&text.len().to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(left: &str, right: &str, same: bool) {
        let digest = |text: &str| Digest::of(Document::parse(text.as_bytes()).unwrap().value());
        assert_eq!(digest(left) == digest(right), same, "{left} and {right}");
    }

    #[test]
    fn equal_values_have_equal_digests() {
        check(r#"{"a": 1, "b": [true]}"#, r#"{"b":[true],"a":1}"#, true);
        check(r#""A""#, r#""\u0041""#, true);
        check("[1, 2]", "[2, 1]", false);
        check("[[], []]", "[[[]]]", false);
        check(r#"["ab", "c"]"#, r#"["a", "bc"]"#, false);
        check("[null]", "[false]", false);
        check("1", r#""1""#, false);
        check("1.5", "1.25", false);
        check("[1, -20, 0]", "[1.0, -2e1, -0.0]", true);
        check("9007199254740993", "9007199254740992.0", false);
        check("1", "1.5", false);
        check("{}", "[]", false);
    }

    #[test]
    fn a_member_can_be_left_out() {
        let parse = |text: &str| Document::parse(text.as_bytes()).unwrap();
        let without = |text: &str| Digest::without(parse(text).value(), "b");
        assert_eq!(without(r#"{"a": 1, "b": 2}"#), Digest::of(parse(r#"{"a": 1}"#).value()));
        assert_eq!(without(r#"{"b": null, "a": 1}"#), without(r#"{"a": 1}"#));
        assert_ne!(without(r#"{"a": {"b": 2}}"#), without(r#"{"a": {}}"#));
    }
}
