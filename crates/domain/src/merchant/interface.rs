//! The interfaces that a merchant operates.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{
    access::MerchantId,
    message_kind::{MessageKind, MessageVersion, VARIANTS_PATH, VARIANTS_VERSIONS},
};

/// An endpoint that the merchant operates: for one kind of message, or for exchange variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Interface {
    Message(MessageKind),
    Variants,
}

const VARIANTS: &str = "exchange-variants";

impl Interface {
    pub fn all() -> impl Iterator<Item = Self> {
        MessageKind::WEBHOOKS.into_iter().map(Self::Message).chain([Self::Variants])
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Message(kind) => kind.name(),
            Self::Variants => VARIANTS,
        }
    }

    /// The encryption context of this interface's secrets. A secret cannot be decrypted in another
    /// context.
    pub fn sealing_context(self, merchant: &MerchantId) -> String {
        format!("endpoint:{merchant}:{self}")
    }

    pub fn default_path(self) -> &'static str {
        match self {
            Self::Message(kind) => kind.default_path(),
            Self::Variants => VARIANTS_PATH,
        }
    }

    /// The supported message versions, oldest first.
    pub fn versions(self) -> &'static [MessageVersion] {
        match self {
            Self::Message(kind) => kind.versions(),
            Self::Variants => VARIANTS_VERSIONS,
        }
    }

    /// The version of the contract.
    pub fn default_version(self) -> MessageVersion {
        // A test checks that every interface has a version.
        self.versions().first().copied().unwrap_or(MessageVersion(1))
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no interface {0:?}: known are {known}", known = names())]
pub struct UnknownInterface(pub String);

fn names() -> String {
    Interface::all().map(Interface::name).collect::<Vec<_>>().join(", ")
}

impl FromStr for Interface {
    type Err = UnknownInterface;

    fn from_str(text: &str) -> Result<Self, UnknownInterface> {
        Self::all()
            .find(|interface| interface.name() == text)
            .ok_or_else(|| UnknownInterface(text.to_owned()))
    }
}

impl Serialize for Interface {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Interface {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
