//! The line identifiers of an order as the database stores them.

use std::borrow::Cow;

/// Joins the line identifiers of an order in one parameter, which the statement splits again.
pub(super) const SEPARATOR: &str = "\u{1f}";
/// Replaces the separator in a line identifier.
const SEPARATOR_SIGN: &str = "\u{241f}";

/// The line identifier as the index stores it.
pub(super) fn searchable(identifier: &str) -> Cow<'_, str> {
    if identifier.contains(SEPARATOR) {
        identifier.replace(SEPARATOR, SEPARATOR_SIGN).into()
    } else {
        identifier.into()
    }
}
