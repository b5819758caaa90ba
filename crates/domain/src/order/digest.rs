//! Whether two JSON values say the same, without keeping both.

use std::fmt;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Equal for equal values, whatever the order of their keys or the spaces between them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    pub fn of(value: &Value) -> Self {
        // One long update is much cheaper than hundreds of short ones.
        let mut bytes = Vec::with_capacity(4096);
        write(&mut bytes, value);
        Self(Sha256::digest(&bytes).into())
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

/// Every value starts with its type and, where it varies, its length, so that no two values are
/// written alike.
fn write(bytes: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => bytes.push(b'n'),
        Value::Bool(true) => bytes.push(b't'),
        Value::Bool(false) => bytes.push(b'f'),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => {
                bytes.push(b'i');
                bytes.extend(integer.to_le_bytes());
            }
            (None, fraction) => {
                bytes.push(b'd');
                bytes.extend(fraction.unwrap_or_default().to_le_bytes());
            }
        },
        Value::String(text) => {
            bytes.push(b's');
            write_text(bytes, text);
        }
        Value::Array(elements) => {
            bytes.push(b'a');
            bytes.extend(elements.len().to_le_bytes());
            elements.iter().for_each(|element| write(bytes, element));
        }
        Value::Object(members) => {
            bytes.push(b'o');
            bytes.extend(members.len().to_le_bytes());
            if members.keys().is_sorted() {
                members.iter().for_each(|(key, member)| write_member(bytes, key, member));
            } else {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_unstable_by_key(|(key, _)| *key);
                members.into_iter().for_each(|(key, member)| write_member(bytes, key, member));
            }
        }
    }
}

fn write_member(bytes: &mut Vec<u8>, key: &str, member: &Value) {
    write_text(bytes, key);
    write(bytes, member);
}

fn write_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend(text.len().to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::from_str;

    use super::*;

    #[track_caller]
    fn check(left: &str, right: &str, same: bool) {
        let digest = |text| Digest::of(&from_str(text).unwrap());
        assert_eq!(digest(left) == digest(right), same, "{left} and {right}");
    }

    #[test]
    fn only_values_that_differ_have_different_digests() {
        check(r#"{"a": 1, "b": [true]}"#, r#"{"b":[true],"a":1}"#, true);
        check(r#""A""#, r#""\u0041""#, true);
        check("[1, 2]", "[2, 1]", false);
        check("[[], []]", "[[[]]]", false);
        check(r#"["ab", "c"]"#, r#"["a", "bc"]"#, false);
        check("[null]", "[false]", false);
        check("1", r#""1""#, false);
        check("1.5", "1.25", false);
        check("{}", "[]", false);
    }
}
