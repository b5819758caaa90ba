//! A parsed document as one flat list: a string without escapes stays where it came, and nothing
//! has an allocation of its own.
//!
//! The invariant: a container is followed by what is in it, and says where that ends; in an object
//! each member is a string and then its value.

use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

/// What a list of places, lengths and ends can count.
type Count = u32;

#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    /// The body.
    text: Box<str>,
    /// The strings that do not stand in the body as they are meant, one after the other.
    unescaped: String,
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    /// Past the signed range.
    Large(u64),
    Fraction(f64),
    /// A string as it stands in the body.
    Plain {
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

/// A container that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open(usize);

impl Tree {
    pub(super) fn new(text: &str) -> Self {
        // About as many as there are in an order.
        let nodes = Vec::with_capacity(text.len() / 10);
        Self { text: text.into(), unescaped: String::new(), nodes }
    }

    /// The same value as a tree, without a body.
    pub(super) fn from_value(value: &Value) -> Self {
        let mut tree = Self::default();
        tree.push_value(value);
        tree
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn root(&self) -> JsonValue<'_> {
        self.json(0)
    }

    pub(super) fn push(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// A string that stands at this place of the body.
    pub(super) fn push_plain(&mut self, start: usize, length: usize) {
        self.nodes.push(Node::Plain { start: count(start), length: count(length) });
    }

    pub(super) fn push_unescaped(&mut self, text: &str) {
        let start = count(self.unescaped.len());
        self.unescaped.push_str(text);
        self.nodes.push(Node::Unescaped { start, length: count(text.len()) });
    }

    /// Begins a container; what is pushed until it is closed is in it.
    pub(super) fn open(&mut self) -> Open {
        self.nodes.push(Node::Null);
        Open(self.nodes.len() - 1)
    }

    pub(super) fn close_array(&mut self, open: Open, length: usize) {
        let end = count(self.nodes.len());
        self.set(open, Node::Array { length: count(length), end });
    }

    pub(super) fn close_object(&mut self, open: Open, length: usize) {
        let end = count(self.nodes.len());
        self.set(open, Node::Object { length: count(length), end });
    }

    fn set(&mut self, Open(at): Open, node: Node) {
        if let Some(place) = self.nodes.get_mut(at) {
            *place = node;
        }
    }

    fn push_value(&mut self, value: &Value) {
        match value {
            Value::Null => self.push(Node::Null),
            Value::Bool(boolean) => self.push(Node::Bool(*boolean)),
            Value::Number(number) => self.push(match (number.as_i64(), number.as_u64()) {
                (Some(integer), _) => Node::Integer(integer),
                (None, Some(large)) => Node::Large(large),
                (None, None) => Node::Fraction(number.as_f64().unwrap_or_default()),
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

    /// The string at this place.
    pub(super) fn text(&self, at: usize) -> &str {
        let (text, start, length) = match self.nodes.get(at) {
            Some(Node::Plain { start, length }) => (&*self.text, *start, *length),
            Some(Node::Unescaped { start, length }) => (&*self.unescaped, *start, *length),
            _ => return "",
        };
        text.get(place(start)..place(start) + place(length)).unwrap_or_default()
    }

    /// Whether the string at this place is this one.
    pub(super) fn is_text(&self, at: usize, text: &str) -> bool {
        let length = match self.nodes.get(at) {
            Some(Node::Plain { length, .. } | Node::Unescaped { length, .. }) => place(*length),
            _ => return false,
        };
        length == text.len() && self.text(at) == text
    }

    fn json(&self, at: usize) -> JsonValue<'_> {
        match self.nodes.get(at) {
            None | Some(Node::Null) => JsonValue::Null,
            Some(Node::Bool(boolean)) => JsonValue::Bool(*boolean),
            Some(Node::Integer(integer)) => JsonValue::Integer(*integer),
            Some(Node::Large(large)) => JsonValue::Large(*large),
            Some(Node::Fraction(fraction)) => JsonValue::Fraction(*fraction),
            Some(Node::Plain { .. } | Node::Unescaped { .. }) => JsonValue::String(self.text(at)),
            Some(Node::Array { length, .. }) => {
                JsonValue::Array(Elements { tree: self, first: at + 1, length: place(*length) })
            }
            Some(Node::Object { length, .. }) => {
                JsonValue::Object(Members { tree: self, first: at + 1, length: place(*length) })
            }
        }
    }

    /// The place after the value at this one.
    fn after(&self, at: usize) -> usize {
        match self.nodes.get(at) {
            Some(Node::Array { end, .. } | Node::Object { end, .. }) => place(*end),
            _ => at + 1,
        }
    }
}

/// No body is longer.
fn count(number: usize) -> Count {
    Count::try_from(number).unwrap_or(Count::MAX)
}

fn place(number: Count) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub enum JsonValue<'a> {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer past the signed 64-bit range.
    Large(u64),
    /// A number written with a point or an exponent, or too large for an integer.
    Fraction(f64),
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
            Self::Large(large) => Some(large.into()),
            Self::Fraction(fraction) => Number::from_f64(fraction),
            _ => None,
        }
    }

    /// A member of an object.
    pub fn get(self, key: &str) -> Option<Self> {
        if let Self::Object(members) = self { members.get(key) } else { None }
    }

    /// The elements of an array, none of anything else.
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
            Self::Large(large) => serializer.serialize_u64(large),
            Self::Fraction(fraction) => serializer.serialize_f64(fraction),
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
        let places = std::iter::successors(Some(first), move |at| Some(tree.after(*at)));
        places.take(length).map(|at| tree.json(at))
    }
}

/// The members of an object, in the order in which they came. No two have the same key.
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
        let at = self.places().find(|at| self.tree.is_text(*at, key))?;
        Some(self.tree.json(at + 1))
    }

    pub fn iter(self) -> impl Iterator<Item = (&'a str, JsonValue<'a>)> {
        self.places().map(move |at| (self.tree.text(at), self.tree.json(at + 1)))
    }

    /// Where the keys are.
    fn places(self) -> impl Iterator<Item = usize> {
        let Self { tree, first, length } = self;
        let places = std::iter::successors(Some(first), move |at| Some(tree.after(at + 1)));
        places.take(length)
    }
}
