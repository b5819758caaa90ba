//! `[oidc]`: the OpenID provider and the roles that its groups give.

use std::net::IpAddr;

use domain::access::MerchantId;
use platform::config::{FromListItem, List};
use secrecy::SecretString;
use serde::Deserialize;
use url::{Host, Url};

use crate::roles::Role;

/// The OpenID provider; there is none if `issuer` is empty.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) issuer: String,
    pub(crate) name: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: SecretString,
    pub(crate) scopes: List<String>,
    pub(crate) groups_claim: String,
    /// The first mapping of a group of the person decides.
    pub(crate) roles: List<RoleMapping>,
    pub(crate) require_verified_email: bool,
}

impl Settings {
    pub(crate) fn is_enabled(&self) -> bool {
        !self.issuer.is_empty()
    }

    /// Rejects settings with which nobody could sign in, or with which secrets would be readable on the
    /// network.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.is_enabled() {
            return Ok(());
        }
        let is_issuer = |url: &Url| url.query().is_none() && url.fragment().is_none();
        if !Url::parse(&self.issuer).is_ok_and(|url| is_issuer(&url) && is_protected(&url)) {
            let rule = "an https URL without query and fragment, or http for localhost";
            return Err(format!("oidc.issuer must be {rule}"));
        }
        for (name, value) in [
            ("name", &self.name),
            ("client_id", &self.client_id),
            ("groups_claim", &self.groups_claim),
        ] {
            if value.is_empty() {
                return Err(format!("oidc.{name} is empty, and oidc.issuer is set"));
            }
        }
        if !self.scopes.iter().any(|scope| scope == "openid") {
            return Err("oidc.scopes must contain openid".to_owned());
        }
        if self.roles.is_empty() {
            return Err("oidc.roles is empty: no group would give a role".to_owned());
        }
        Ok(())
    }
}

/// Whether requests to a URL are encrypted or stay on this machine.
pub(super) fn is_protected(url: &Url) -> bool {
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::from(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::from(address).is_loopback(),
        None => false,
    };
    url.scheme() == "https" || url.scheme() == "http" && is_local
}

/// A group of the provider and the role that it gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoleMapping {
    pub(super) group: String,
    pub(super) role: Role,
    pub(super) merchant: Option<MerchantId>,
}

impl FromListItem for RoleMapping {
    fn from_item(item: String) -> Result<Self, String> {
        parse_mapping(&item).ok_or_else(|| {
            format!(
                "{item:?} is not a role mapping like staff=support or shop=merchant-admin:acme, with \
                 a merchant for merchant-admin and merchant-viewer only"
            )
        })
    }
}

/// A group can contain `=`, a role cannot.
fn parse_mapping(item: &str) -> Option<RoleMapping> {
    let (group, role) = item.rsplit_once('=')?;
    let (role, merchant) = match role.split_once(':') {
        Some((role, merchant)) => (role, Some(merchant.parse::<MerchantId>().ok()?)),
        None => (role, None),
    };
    let role: Role = role.parse().ok()?;
    let is_complete = !group.is_empty() && role.is_of_merchant() == merchant.is_some();
    is_complete.then(|| RoleMapping { group: group.to_owned(), role, merchant })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_mapping_has_a_merchant_if_the_role_needs_one() {
        let parsed = |item: &str| {
            parse_mapping(item).map(|RoleMapping { group, role, merchant }| {
                (group, role.as_str(), merchant.map(String::from))
            })
        };
        assert_eq!(parsed("staff=support"), Some(("staff".to_owned(), "support", None)));
        let admin = Some(("cn=shop".to_owned(), "merchant-admin", Some("acme".to_owned())));
        assert_eq!(parsed("cn=shop=merchant-admin:acme"), admin);
        for invalid in [
            "",
            "staff",
            "=support",
            "staff=",
            "staff=owner",
            "staff=support:acme",
            "shop=merchant-admin",
            "shop=merchant-admin:",
            "shop=merchant-viewer:Acme",
        ] {
            assert_eq!(parsed(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn only_local_urls_may_be_unencrypted() {
        for (url, expected) in [
            ("https://id.example", true),
            ("http://localhost:8085", true),
            ("http://127.0.0.1/x", true),
            ("http://[::1]/x", true),
            ("http://id.example", false),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
            ("ftp://localhost", false),
        ] {
            assert_eq!(is_protected(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
