//! The file of a merchant.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use anyhow::{Context as _, bail};
use domain::access::{MerchantId, Scope};
use domain::merchant::Interface;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::settings::{read_secret, read_text};

/// A merchant with its settings, clients and endpoints. The names of settings are those of the API.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MerchantFile {
    #[serde(deserialize_with = "merchant_id")]
    pub(super) merchant: MerchantId,
    pub(super) name: String,
    #[serde(default)]
    pub(super) settings: Map<String, Value>,
    #[serde(default)]
    pub(super) clients: Vec<ClientEntry>,
    #[serde(default)]
    pub(super) endpoints: BTreeMap<String, EndpointEntry>,
}

/// Names the field in the error.
fn merchant_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<MerchantId, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|error| D::Error::custom(format!("merchant: {error}")))
}

/// A client, which its name identifies among the clients of the merchant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientEntry {
    pub(super) name: String,
    pub(super) scopes: Vec<Scope>,
}

/// The new state of an endpoint.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EndpointEntry {
    pub(super) url: Option<String>,
    pub(super) path: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) timeout_ms: Option<u32>,
    /// The kind, its settings and its secret. `password_file`, `token_file`, `key_file` and
    /// `client_secret_file` name a file with the secret.
    pub(super) authentication: Map<String, Value>,
    /// Without it, the endpoint stays paused or active.
    pub(super) paused: Option<bool>,
}

impl MerchantFile {
    /// Reads a file, and the files of secrets that it names.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&read_text(path)?, folder).with_context(|| path.display().to_string())
    }

    /// Paths of secrets are relative to `folder`.
    pub(super) fn parse(text: &str, folder: &Path) -> anyhow::Result<Self> {
        let mut file: Self = yaml_serde::from_str(text)?;
        let mut names = HashSet::new();
        if let Some(twice) = file.clients.iter().find(|client| !names.insert(&client.name)) {
            bail!("two clients have the name {}", twice.name);
        }
        for (interface, endpoint) in &mut file.endpoints {
            if interface.parse::<Interface>().is_err() {
                let known: Vec<_> = Interface::all().map(Interface::name).collect();
                bail!("{interface} is not an endpoint: the endpoints are {}", known.join(", "));
            }
            endpoint.complete(folder).with_context(|| format!("endpoint {interface}"))?;
        }
        Ok(file)
    }
}

impl EndpointEntry {
    /// Replaces the names of files by the secrets in them, and completes the authentication.
    fn complete(&mut self, folder: &Path) -> anyhow::Result<()> {
        for name in ["password", "token", "key", "client_secret"] {
            if let Some(file) = self.authentication.remove(&format!("{name}_file")) {
                let file = file.as_str().with_context(|| format!("{name}_file is not a path"))?;
                let secret = read_secret(&folder.join(file))?;
                self.authentication.insert(name.to_owned(), secret.into());
            }
        }
        let kind = self.authentication.get("kind").and_then(Value::as_str).unwrap_or("none");
        let kind = kind.replace('-', "_");
        if kind == "oauth2" {
            // The service stores this default.
            let place = self.authentication.entry("credentials_in");
            place.or_insert_with(|| "basic".into());
        }
        self.authentication.insert("kind".to_owned(), kind.into());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = MerchantFile::parse(text, Path::new("")).unwrap_err();
        assert!(format!("{error:#}").contains(expected), "{error:#}");
    }

    #[test]
    fn a_file_that_cannot_be_applied_is_an_error() {
        check_error("merchant: acme\n", "missing field `name`");
        check_error("merchant: A B\nname: Acme\n", "merchant");
        check_error("merchant: acme\nname: Acme\ncolour: red\n", "unknown field `colour`");
        let client = "- {name: Shop, scopes: [orders]}\n";
        let twice = format!("merchant: acme\nname: Acme\nclients:\n{client}{client}");
        check_error(&twice, "two clients have the name Shop");
        check_error(
            "merchant: acme\nname: Acme\nendpoints: {letters: {}}\n",
            "letters is not an endpoint",
        );
        let unknown = "merchant: acme\nname: Acme\nendpoints:\n  rma: {uri: x}\n";
        check_error(unknown, "unknown field `uri`");
    }

    #[test]
    fn secrets_come_from_files_beside_the_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("password"), "s3cret\n").unwrap();
        let text = "merchant: acme\nname: Acme\nendpoints:\n  rma:\n    authentication:\n      \
                    {kind: basic, username: u, password_file: password}\n  exchange-order: {}\n";
        let file = MerchantFile::parse(text, folder.path()).unwrap();
        let authentication = |interface: &str| file.endpoints[interface].authentication.clone();
        assert_eq!(authentication("rma")["password"], "s3cret");
        assert!(!authentication("rma").contains_key("password_file"));
        assert_eq!(authentication("exchange-order")["kind"], "none");
        let missing = MerchantFile::parse(text, Path::new("nowhere")).unwrap_err();
        assert!(format!("{missing:#}").starts_with("endpoint rma: cannot read"), "{missing:#}");
    }
}
