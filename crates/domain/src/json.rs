//! Strict JSON parsing, and validation that reports every invalid field at once.
//!
//! [`Document::parse`] rejects ambiguous JSON with a [`ParseError`] (HTTP 400): invalid UTF-8,
//! syntax errors, duplicate keys, too deep nesting and too many values. [`Document::read`] rejects
//! invalid fields with a [`ValidationError`] (HTTP 422). NUL characters and numbers outside the
//! signed 64-bit range are invalid in every field, known or not, because PostgreSQL cannot store
//! them unchanged.
//!
//! A reader is a function `Field -> Option<T>` that reports an error before it returns `None`.
//! [`read_fields!`](crate::json::read_fields) reads all fields of a struct before it gives up, so
//! that one invalid field does not hide the next:
//!
//! ```text
//! fn read(parcel: &Object<'_>) -> Option<Parcel> {
//!     read_fields!(Parcel {
//!         carrier: parcel.required("carrier", text(1..=64)),
//!         grams: parcel.required("grams", integer(1..=30_000)),
//!         note: parcel.optional("note", text(0..=255)),
//!     })
//! }
//! ```
//!
//! An optional field that is `null` counts as absent. A required field that is `null` has the wrong
//! type. Unknown keys are accepted unless the reader writes `read_fields!(parcel => Parcel { … })` or
//! calls [`Object::reject_unknown`].
//!
//! See docs/decisions/json-readers.md.

mod digest;
mod document;
mod errors;
mod field;
mod parser;
mod path;
mod readers;
mod tree;
mod unknown_field;
mod unstorable;

pub use digest::Digest;
pub use document::Document;
pub use errors::{Code, FieldError, ValidationError};
pub use field::{Field, Object};
pub use parser::{MAX_DEPTH, MAX_VALUES, ParseError, Position};
pub use readers::{
    any, array, boolean, currency, integer, number, object, one_of, parsed, printable_text,
    read_fields, text, timestamp, variant,
};
pub use tree::{Elements, JsonValue, Members};
pub use unknown_field::unknown_field;

#[cfg(test)]
mod tests;
