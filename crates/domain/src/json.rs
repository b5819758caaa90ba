//! The one way a service reads a JSON body: strictly, and reporting every failing field at once.
//!
//! Reading has two steps, and each has its own answer over HTTP.
//!
//! 1. [`Document::parse`] turns bytes into a value. What is not one unambiguous JSON document is
//!    [`ParseError`], a **400** with a position: bytes that are not UTF-8, a syntax error, a key
//!    that appears twice in one object, nesting past [`MAX_DEPTH`], more than [`MAX_VALUES`] values.
//! 2. [`Document::read`] turns the value into a typed thing. What is JSON but not what was asked
//!    for is [`ValidationError`], a **422** that lists fields: one that is missing, of another type
//!    (a fraction where an integer belongs is one of these) or outside its bounds. Two things are
//!    invalid wherever they stand, also in fields nobody reads, because they could not be stored
//!    and given back unchanged: a NUL character, and a number outside the signed 64-bit range.
//!
//! The invariant: when `read` returns a value, no field of the document was at fault, and when it
//! does not, the list holds each faulty field once, with the first thing found wrong with it.
//!
//! A validator is a list of fields. Each is read into an `Option`, so that a failure does not
//! hide the next one, and the `?` come last:
//!
//! ```
//! use domain::json::{Document, Object, integer, object, text};
//!
//! struct Parcel {
//!     carrier: String,
//!     grams: i64,
//!     note: Option<String>,
//! }
//!
//! impl Parcel {
//!     fn read(parcel: &Object<'_>) -> Option<Self> {
//!         let carrier = parcel.required("carrier", text(1..=64));
//!         let grams = parcel.required("grams", integer(1..=30_000));
//!         let note = parcel.optional("note", text(0..=255));
//!         Some(Self { carrier: carrier?, grams: grams?, note: note? })
//!     }
//! }
//!
//! let document = Document::parse(br#"{"carrier": 7, "grams": 0}"#)?;
//! let invalid = document.read(object(Parcel::read)).err().unwrap();
//! let fields: Vec<_> = invalid.errors.iter().map(|error| error.field.as_str()).collect();
//! assert_eq!(fields, ["$.carrier", "$.grams"]);
//! # Ok::<(), domain::json::ParseError>(())
//! ```
//!
//! An optional field that is `null` counts as absent; a required one that is `null` is of the
//! wrong type. Unknown keys are nobody's fault.

mod digest;
mod errors;
mod field;
mod parser;
mod path;
mod readers;
mod tree;

pub use digest::Digest;
pub use errors::{Code, FieldError, ValidationError};
pub use field::{Field, Object};
pub use parser::{MAX_DEPTH, MAX_VALUES, ParseError, Position};
pub use readers::{
    any, array, boolean, currency, integer, number, object, one_of, parsed, text, timestamp,
};
pub use tree::{Elements, JsonValue, Members};

use serde_json::Value;

use errors::Report;
use path::Path;
use tree::Tree;

/// A JSON document whose every value can be stored and given back, or whose faults are known.
#[derive(Debug, Clone)]
pub struct Document {
    tree: Tree,
    /// Whether some string holds a NUL or some number is out of range.
    has_unstorable: bool,
}

impl Document {
    /// Reads bytes as exactly one JSON value.
    pub fn parse(body: &[u8]) -> Result<Self, ParseError> {
        let (tree, has_unstorable) = parser::parse(body)?;
        Ok(Self { tree, has_unstorable })
    }

    /// Reads the whole document as `kind`, usually [`object`].
    pub fn read<T>(
        &self,
        mut kind: impl FnMut(Field<'_>) -> Option<T>,
    ) -> Result<T, ValidationError> {
        let report = Report::default();
        if self.has_unstorable {
            parser::report_unstorable(self.value(), &Path::Root, &report);
        }
        let root = Field::new(self.value(), Path::Root, &report);
        let read = kind(root);
        match (read, report.into_invalid()) {
            (Some(read), None) => Ok(read),
            (_, Some(invalid)) => Err(invalid),
            (None, None) => Err(ValidationError::from(FieldError::invalid(
                "$",
                "the document could not be read",
            ))),
        }
    }

    /// The document as it came, unknown fields included.
    pub fn value(&self) -> JsonValue<'_> {
        self.tree.root()
    }
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        let tree = Tree::from_value(value);
        let has_unstorable = parser::has_unstorable(tree.root());
        Self { tree, has_unstorable }
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

#[cfg(test)]
mod tests;
