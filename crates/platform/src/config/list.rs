//! Settings that are lists.

use std::{ops::Deref, str::FromStr};

use serde::{Deserialize, Deserializer, de::Error as _};

/// A list: an array in a file, `a,b,c` in the environment.
#[derive(Debug, Clone, Default)]
pub struct List<T>(pub Vec<T>);

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<'de, T> Deserialize<'de> for List<T>
where
    T: FromListItem,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Array(Vec<String>),
            Commas(String),
        }
        let items = match Written::deserialize(deserializer)? {
            Written::Array(items) => items,
            Written::Commas(text) => text
                .split(',')
                .map(|item| item.trim().to_owned())
                .filter(|item| !item.is_empty())
                .collect(),
        };
        let mut read = Vec::new();
        let mut faults = Vec::new();
        for item in items {
            match T::from_item(item) {
                Ok(item) => read.push(item),
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(Self(read)) } else { Err(D::Error::custom(faults.join("; "))) }
    }
}

pub trait FromListItem: Sized {
    fn from_item(item: String) -> Result<Self, String>;
}

impl FromListItem for secrecy::SecretString {
    fn from_item(item: String) -> Result<Self, String> {
        Ok(Self::from(item))
    }
}

impl FromListItem for String {
    fn from_item(item: String) -> Result<Self, String> {
        Ok(item)
    }
}

impl FromListItem for ipnet::IpNet {
    fn from_item(item: String) -> Result<Self, String> {
        Self::from_str(&item)
            .or_else(|_not_a_network| item.parse::<std::net::IpAddr>().map(Self::from))
            .map_err(|_not_an_address| {
                format!("{item:?} is not an address or a network like 10.0.0.0/8")
            })
    }
}
