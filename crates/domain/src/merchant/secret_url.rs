//! URLs with a secret query.

use std::fmt::{self, Display};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A URL whose query can contain a secret, such as an access key. Its text is the URL, then `?`, then
/// the query in the form of `S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretUrl<S> {
    /// The URL without its query.
    pub base: String,
    pub query: Option<S>,
}

impl<S> SecretUrl<S> {
    /// Converts the query to another form.
    pub fn map<T, E>(&self, convert: impl FnMut(&S) -> Result<T, E>) -> Result<SecretUrl<T>, E> {
        let query = self.query.as_ref().map(convert).transpose()?;
        Ok(SecretUrl { base: self.base.clone(), query })
    }
}

impl<S: Display> Display for SecretUrl<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        self.query.as_ref().map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

impl<S: From<String>> From<String> for SecretUrl<S> {
    fn from(text: String) -> Self {
        match text.split_once('?') {
            Some((base, query)) => {
                Self { base: base.to_owned(), query: Some(query.to_owned().into()) }
            }
            None => Self { base: text, query: None },
        }
    }
}

impl<S: Display> Serialize for SecretUrl<S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, S: From<String>> Deserialize<'de> for SecretUrl<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
