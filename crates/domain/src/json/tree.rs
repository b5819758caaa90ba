//! A parsed document as one flat list of nodes, without an allocation per value.
//!
//! Invariant: the nodes of a container's content follow it, and the container holds the index
//! of the first node after them. A member of an object is a string node and then its value.

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

/// An offset, length or index. The parser rejects bodies that are too long for it.
type Count = u32;

#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    body: Box<str>,
    /// Concatenated strings that are not slices of `body`: those with escapes, and all strings of a
    /// document that was not parsed from a text.
    unescaped: String,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer above `i64::MAX`.
    Unsigned(u64),
    Float(f64),
    /// A slice of the body.
    Slice {
        start: Count,
        length: Count,
    },
    Unescaped {
        start: Count,
        length: Count,
    },
    Array {
        length: Count,
        end: Count,
    },
    Object {
        length: Count,
        end: Count,
    },
}

/// A container that is still being filled.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenContainer(usize);

impl Tree {
    pub(super) fn new(text: &str) -> Self {
        // A typical order has one node per ten bytes.
        let nodes = Vec::with_capacity(text.len() / 10);
        Self { body: text.into(), unescaped: String::new(), nodes }
    }

    pub(super) fn from_value(value: &Value) -> Self {
        let mut tree = Self::default();
        tree.push_value(value);
        tree
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn body(&self) -> &str {
        &self.body
    }

    pub(super) fn root(&self) -> JsonValue<'_> {
        self.value_at(0)
    }

    pub(super) fn push(&mut self, node: Node) {
        self.nodes.push(node);
    }

    pub(super) fn push_slice(&mut self, start: usize, length: usize) {
        self.nodes.push(Node::Slice { start: to_count(start), length: to_count(length) });
    }

    pub(super) fn push_unescaped(&mut self, text: &str) {
        let start = to_count(self.unescaped.len());
        self.unescaped.push_str(text);
        self.nodes.push(Node::Unescaped { start, length: to_count(text.len()) });
    }

    /// Opens a container. Nodes pushed until it is closed belong to it.
    pub(super) fn open(&mut self) -> OpenContainer {
        self.nodes.push(Node::Null);
        OpenContainer(self.nodes.len() - 1)
    }

    pub(super) fn close_array(&mut self, open: OpenContainer, length: usize) {
        let end = to_count(self.nodes.len());
        self.set(open, Node::Array { length: to_count(length), end });
    }

    pub(super) fn close_object(&mut self, open: OpenContainer, length: usize) {
        let end = to_count(self.nodes.len());
        self.set(open, Node::Object { length: to_count(length), end });
    }

    fn set(&mut self, OpenContainer(at): OpenContainer, node: Node) {
        if let Some(slot) = self.nodes.get_mut(at) {
            *slot = node;
        }
    }

    fn push_value(&mut self, value: &Value) {
        match value {
            Value::Null => self.push(Node::Null),
            Value::Bool(boolean) => self.push(Node::Bool(*boolean)),
            Value::Number(number) => self.push(match (number.as_i64(), number.as_u64()) {
                (Some(integer), _) => Node::Integer(integer),
                (None, Some(unsigned)) => Node::Unsigned(unsigned),
                (None, None) => Node::Float(number.as_f64().unwrap_or_default()),
            }),
            Value::String(text) => self.push_unescaped(text),
            Value::Array(elements) => {
                let open = self.open();
                elements.iter().for_each(|element| self.push_value(element));
                self.close_array(open, elements.len());
            }
            Value::Object(members) => {
                let open = self.open();
                for (key, member) in members {
                    self.push_unescaped(key);
                    self.push_value(member);
                }
                self.close_object(open, members.len());
            }
        }
    }

    /// The string at an index, or an empty one when there is none.
    pub(super) fn text(&self, at: usize) -> &str {
        let (text, start, length) = match self.nodes.get(at) {
            Some(Node::Slice { start, length }) => (&*self.body, *start, *length),
            Some(Node::Unescaped { start, length }) => (&*self.unescaped, *start, *length),
            _ => return "",
        };
        text.get(to_usize(start)..to_usize(start) + to_usize(length)).unwrap_or_default()
    }

    /// Compares lengths first, which decides most comparisons of keys.
    pub(super) fn is_text(&self, at: usize, text: &str) -> bool {
        let length = match self.nodes.get(at) {
            Some(Node::Slice { length, .. } | Node::Unescaped { length, .. }) => to_usize(*length),
            _ => return false,
        };
        length == text.len() && self.text(at) == text
    }

    fn value_at(&self, at: usize) -> JsonValue<'_> {
        match self.nodes.get(at) {
            None | Some(Node::Null) => JsonValue::Null,
            Some(Node::Bool(boolean)) => JsonValue::Bool(*boolean),
            Some(Node::Integer(integer)) => JsonValue::Integer(*integer),
            Some(Node::Unsigned(unsigned)) => JsonValue::Unsigned(*unsigned),
            Some(Node::Float(float)) => JsonValue::Float(*float),
            Some(Node::Slice { .. } | Node::Unescaped { .. }) => JsonValue::String(self.text(at)),
            Some(Node::Array { length, .. }) => {
                JsonValue::Array(Elements { tree: self, first: at + 1, length: to_usize(*length) })
            }
            Some(Node::Object { length, .. }) => {
                JsonValue::Object(Members { tree: self, first: at + 1, length: to_usize(*length) })
            }
        }
    }

    /// The index after the value at an index.
    fn after(&self, at: usize) -> usize {
        match self.nodes.get(at) {
            Some(Node::Array { end, .. } | Node::Object { end, .. }) => to_usize(*end),
            _ => at + 1,
        }
    }
}

fn to_count(number: usize) -> Count {
    Count::try_from(number).unwrap_or(Count::MAX)
}

fn to_usize(number: Count) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A borrowed value of a document.
#[derive(Debug, Clone, Copy)]
pub enum JsonValue<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer above `i64::MAX`.
    Unsigned(u64),
    /// A number written with a point or an exponent, or too large for an integer.
    Float(f64),
    String(&'a str),
    Array(Elements<'a>),
    Object(Members<'a>),
}

impl<'a> JsonValue<'a> {
    pub fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }

    pub fn as_str(self) -> Option<&'a str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub fn as_i64(self) -> Option<i64> {
        if let Self::Integer(integer) = self { Some(integer) } else { None }
    }

    pub fn as_number(self) -> Option<Number> {
        match self {
            Self::Integer(integer) => Some(integer.into()),
            Self::Unsigned(unsigned) => Some(unsigned.into()),
            Self::Float(float) => Number::from_f64(float),
            _ => None,
        }
    }

    /// A member of an object.
    pub fn get(self, key: &str) -> Option<Self> {
        if let Self::Object(members) = self { members.get(key) } else { None }
    }

    /// The elements of an array. Other values have none.
    pub fn elements(self) -> impl Iterator<Item = Self> {
        let elements = if let Self::Array(elements) = self { Some(elements) } else { None };
        elements.into_iter().flat_map(Elements::iter)
    }

    pub fn to_value(self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Serialize for JsonValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(boolean) => serializer.serialize_bool(boolean),
            Self::Integer(integer) => serializer.serialize_i64(integer),
            Self::Unsigned(unsigned) => serializer.serialize_u64(unsigned),
            Self::Float(float) => serializer.serialize_f64(float),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(elements) => serializer.collect_seq(elements.iter()),
            Self::Object(members) => serializer.collect_map(members.iter()),
        }
    }
}

/// The elements of an array.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a> {
    tree: &'a Tree,
    first: usize,
    length: usize,
}

impl<'a> Elements<'a> {
    pub fn len(self) -> usize {
        self.length
    }

    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    pub fn iter(self) -> impl Iterator<Item = JsonValue<'a>> {
        let Self { tree, first, length } = self;
        let indexes = std::iter::successors(Some(first), move |at| Some(tree.after(*at)));
        indexes.take(length).map(|at| tree.value_at(at))
    }
}

/// The members of an object in their original order. Their keys are distinct.
#[derive(Debug, Clone, Copy)]
pub struct Members<'a> {
    tree: &'a Tree,
    first: usize,
    length: usize,
}

impl<'a> Members<'a> {
    pub fn len(self) -> usize {
        self.length
    }

    pub fn is_empty(self) -> bool {
        self.length == 0
    }

    pub fn get(self, key: &str) -> Option<JsonValue<'a>> {
        let at = self.key_indexes().find(|at| self.tree.is_text(*at, key))?;
        Some(self.tree.value_at(at + 1))
    }

    pub fn iter(self) -> impl Iterator<Item = (&'a str, JsonValue<'a>)> {
        self.key_indexes().map(move |at| (self.tree.text(at), self.tree.value_at(at + 1)))
    }

    fn key_indexes(self) -> impl Iterator<Item = usize> {
        let Self { tree, first, length } = self;
        let indexes = std::iter::successors(Some(first), move |at| Some(tree.after(at + 1)));
        indexes.take(length)
    }
}
