//! The limits of warehouse messages. The `#[schema]` attributes repeat them, because those accept
//! only literals.

use std::ops::RangeInclusive;

/// The length of an identifier, in characters.
pub(super) const IDENTIFIER: RangeInclusive<usize> = 1..=255;
/// The length of an optional text. Some senders write an empty string for an absent text.
pub(super) const OPTIONAL_TEXT: RangeInclusive<usize> = 0..=255;
/// The range of an amount. The sum of a thousand such amounts fits into 64 bits.
pub(super) const AMOUNT: RangeInclusive<i64> = 0..=1_000_000_000_000_000;
/// A unit with this many flags of maximum length still fits into a message.
pub(super) const MAX_FLAGS: usize = 100;
pub(super) const MAX_NOTE: usize = 5_000;
/// The maximum number of cartons of an ASN.
pub(super) const MAX_CARTONS: usize = 10_000;
/// The maximum number of detail lines of an outbound ASN message.
pub const MAX_MESSAGE_LINES: usize = 1_000;
/// The maximum size of a message.
pub const MAX_MESSAGE_BYTES: usize = 512 * 1024;
