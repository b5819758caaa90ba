//! The layout of a file of orders, by its first bytes.

/// The tokens of a message before its orders.
pub(super) const MESSAGE_START: [&[u8]; 7] =
    [b"{", b"\"returns_portal_order\"", b":", b"{", b"\"orders\"", b":", b"["];

/// The error of a file with another content.
pub(super) const UNKNOWN: &str = "this is not JSON: expected a message with returns_portal_order, an \
                                  array of orders, or one order after the other; CSV files cannot be \
                                  imported";

/// The beginning of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// A message as it is published.
    Message,
    Array,
    /// A whole order on the first line.
    Lines,
    /// An order that spans lines.
    Values,
    Unknown,
}

impl Start {
    /// The start of a file with these first bytes. An empty file has no lines.
    pub(super) fn of(head: &[u8]) -> Self {
        let head = head.trim_ascii_start();
        match head.first() {
            None => Self::Lines,
            Some(b'[') => Self::Array,
            Some(b'{') if is_message(head) => Self::Message,
            Some(b'{') if first_line_is_whole(head) => Self::Lines,
            Some(b'{') => Self::Values,
            Some(_) => Self::Unknown,
        }
    }
}

fn is_message(head: &[u8]) -> bool {
    let mut rest = Some(head);
    for token in MESSAGE_START {
        rest = rest.and_then(|rest| rest.trim_ascii_start().strip_prefix(token));
    }
    rest.is_some()
}

/// Whether the braces and brackets of the first line are closed, as far as it is known.
fn first_line_is_whole(head: &[u8]) -> bool {
    let mut depth = 0i64;
    let mut in_string = false;
    let mut escaped = false;
    for byte in head {
        match byte {
            b'\n' => return depth == 0,
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    true
}
