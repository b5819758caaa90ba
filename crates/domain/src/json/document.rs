//! A parsed JSON document.

use serde_json::Value;

use super::errors::{FieldError, Report, ValidationError};
use super::field::Field;
use super::parser::{ParseError, parse};
use super::path::Path;
use super::tree::{JsonValue, Tree};
use super::unstorable::{has_unstorable, report_unstorable};

#[derive(Debug, Clone)]
pub struct Document {
    tree: Tree,
    /// Whether a string contains a NUL or a number is outside the 64-bit range.
    has_unstorable: bool,
}

impl Document {
    /// Parses exactly one JSON value.
    pub fn parse(body: &[u8]) -> Result<Self, ParseError> {
        let (tree, has_unstorable) = parse(body)?;
        Ok(Self { tree, has_unstorable })
    }

    /// Reads the whole document, usually with [`object`](super::object). Each invalid field is
    /// reported once, with the first error found.
    pub fn read<T>(
        &self,
        mut reader: impl FnMut(Field<'_>) -> Option<T>,
    ) -> Result<T, ValidationError> {
        let report = Report::default();
        if self.has_unstorable {
            report_unstorable(self.value(), &Path::Root, &report);
        }
        let read = reader(Field::new(self.value(), Path::Root, &report));
        match (read, report.into_error()) {
            (Some(read), None) => Ok(read),
            (_, Some(error)) => Err(error),
            (None, None) => Err(FieldError::invalid("$", "the document could not be read").into()),
        }
    }

    /// The text of the document. Empty for a document that was not parsed from a text.
    pub fn text(&self) -> &str {
        self.tree.body()
    }

    /// The document as it was received, with unknown fields.
    pub fn value(&self) -> JsonValue<'_> {
        self.tree.root()
    }
}

impl From<&Value> for Document {
    fn from(value: &Value) -> Self {
        let tree = Tree::from_value(value);
        let has_unstorable = has_unstorable(tree.root());
        Self { tree, has_unstorable }
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}
