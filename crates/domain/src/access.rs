//! Merchant identifiers, OAuth scopes and token revocations.

use std::{fmt, str::FromStr};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::event::Event;

/// The identifier of a merchant: 1 to 63 lower-case letters, digits and hyphens, beginning with a
/// letter or digit. It never changes and appears in tokens, headers and messages.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, pattern = "^[a-z0-9][a-z0-9-]{0,62}$", example = "acme")]
pub struct MerchantId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to 63 lower-case letters, digits or hyphens, beginning with a letter or digit")]
pub struct InvalidMerchantId;

impl MerchantId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for MerchantId {
    type Error = InvalidMerchantId;

    fn try_from(text: String) -> Result<Self, InvalidMerchantId> {
        let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        let fits = (1..=63).contains(&text.len()) && plain && !text.starts_with('-');
        if fits { Ok(Self(text)) } else { Err(InvalidMerchantId) }
    }
}

impl FromStr for MerchantId {
    type Err = InvalidMerchantId;

    fn from_str(text: &str) -> Result<Self, InvalidMerchantId> {
        Self::try_from(text.to_owned())
    }
}

impl From<MerchantId> for String {
    fn from(id: MerchantId) -> Self {
        id.0
    }
}

impl fmt::Display for MerchantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

crate::words! {
    /// A permission that a client can have.
    #[strum(parse_err_ty = UnknownScope, parse_err_fn = UnknownScope::new)]
    pub enum Scope as "lowercase" {
        Orders,
        Returns,
        Warehouse,
        Carrier,
        Read,
        Replay,
        Manage,
        Operator,
        Shopper,
    }
}

impl Scope {
    pub const ALL: [Self; 9] = [
        Self::Orders,
        Self::Returns,
        Self::Warehouse,
        Self::Carrier,
        Self::Read,
        Self::Replay,
        Self::Manage,
        Self::Operator,
        Self::Shopper,
    ];
    /// Scopes that a merchant can give to its own clients.
    pub const OF_MERCHANTS: [Self; 5] =
        [Self::Orders, Self::Returns, Self::Read, Self::Replay, Self::Manage];

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// One sentence for the API documents.
    pub fn about(self) -> &'static str {
        match self {
            Self::Orders => "Publish and read orders.",
            Self::Returns => "Start, read and cancel returns.",
            Self::Warehouse => "Report warehouse operations of any merchant.",
            Self::Carrier => "Report parcel events of any merchant.",
            Self::Read => "Read orders, returns, deliveries, endpoints and the audit log.",
            Self::Replay => "Replay and retry deliveries.",
            Self::Manage => {
                "Manage the endpoints, clients, people, portal and mails of the own merchant."
            }
            Self::Operator => "Operate the service.",
            Self::Shopper => "Work on the orders that a shopper has proven to know.",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown scope {0:?}: known are orders, returns, warehouse, carrier, read, replay, manage, operator, \
     shopper"
)]
pub struct UnknownScope(pub String);

impl UnknownScope {
    fn new(text: &str) -> Self {
        Self(text.to_owned())
    }
}

/// A set of scopes. Its text has spaces between the scopes, as in OAuth.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    pub fn contains(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// The known scopes of a text. Unknown scopes are ignored.
    pub fn known(text: &str) -> Self {
        text.split_ascii_whitespace().filter_map(|scope| scope.parse().ok()).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Scope> {
        self.0.iter().copied()
    }

    pub fn is_subset(&self, of: &Self) -> bool {
        self.iter().all(|scope| of.contains(scope))
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut scopes: Vec<_> = scopes.into_iter().collect();
        scopes.sort();
        scopes.dedup();
        Self(scopes)
    }
}

impl FromStr for Scopes {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        text.split_ascii_whitespace().map(Scope::from_str).collect()
    }
}

impl TryFrom<String> for Scopes {
    type Error = UnknownScope;

    fn try_from(text: String) -> Result<Self, UnknownScope> {
        text.parse()
    }
}

impl From<Scopes> for String {
    fn from(scopes: Scopes) -> Self {
        scopes.to_string()
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.write_str(&names.join(" "))
    }
}

/// The token, client or session that was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", content = "id", rename_all = "lowercase")]
pub enum Revoked {
    /// One token, identified by its `jti`.
    Token(String),
    /// All tokens of a client.
    Client(String),
    /// All tokens of a person's session, identified by its `sid`.
    Session(String),
}

/// A revoked token, client or session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Revocation {
    #[serde(flatten)]
    pub revoked: Revoked,
    /// The revocation can be deleted at this time, because all affected tokens have expired.
    pub expires_at: DateTime<Utc>,
}

impl Event for Revocation {
    const TYPE: &'static str = "token.revoked.v1";

    fn subject(&self) -> String {
        match &self.revoked {
            Revoked::Token(id) => format!("token/{id}"),
            Revoked::Client(id) => format!("client/{id}"),
            Revoked::Session(id) => format!("session/{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merchant_id_is_lower_case_ascii() {
        for good in ["acme", "a", "7-eleven", &"a".repeat(63)] {
            assert!(good.parse::<MerchantId>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "Acme", "a_b", "a b", "ä", "a/b", &"a".repeat(64)] {
            assert!(bad.parse::<MerchantId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn scopes_are_a_sorted_set() {
        let scopes: Scopes = "returns orders  returns".parse().unwrap();
        assert_eq!(scopes.to_string(), "orders returns");
        assert!(scopes.is_subset(&"orders returns operator".parse().unwrap()));
        assert_eq!("orders admin".parse::<Scopes>(), Err(UnknownScope("admin".into())));
        assert_eq!(Scopes::known("orders admin").to_string(), "orders");
    }

    #[test]
    fn the_error_of_an_unknown_scope_names_every_scope() {
        let message = UnknownScope("admin".into()).to_string();
        let (_, known) = message.split_once("known are ").unwrap();
        assert_eq!(known.split(", ").collect::<Vec<_>>(), Scope::ALL.map(Scope::as_str));
    }
}
