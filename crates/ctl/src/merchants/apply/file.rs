//! The file of a merchant.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context as _, anyhow};
use domain::access::{MerchantId, Scope};
use domain::json::{
    Code, Document, FieldError, Object, array, boolean, integer, object, parsed, read_fields, text,
    variant,
};
use domain::merchant::{Interface, Settings};
use domain::printable::one_line;
use domain::warehouse::{Warehouse, Warehouses};
use serde_json::{Map, Value};

use crate::output::file_name;
use crate::settings::{read_secret, read_text};

/// The validation of the plan limits lengths.
const ANY_LENGTH: RangeInclusive<usize> = 0..=usize::MAX;

/// The secrets among the settings of an authentication.
pub(super) const SECRETS: [&str; 7] = [
    "password",
    "token",
    "key",
    "client_secret",
    "private_key",
    "secret_access_key",
    "session_token",
];

/// A merchant with its settings, clients, endpoints and warehouses. The names of settings are those of the API.
#[derive(Debug)]
pub(super) struct MerchantFile {
    pub(super) merchant: MerchantId,
    pub(super) name: String,
    pub(super) settings: Map<String, Value>,
    pub(super) clients: Vec<ClientEntry>,
    pub(super) endpoints: BTreeMap<String, EndpointEntry>,
    pub(super) warehouses: Warehouses,
}

/// A client, which its name identifies among the clients of the merchant.
#[derive(Debug)]
pub(super) struct ClientEntry {
    pub(super) name: String,
    pub(super) scopes: Vec<Scope>,
}

/// The new state of an endpoint.
#[derive(Debug)]
pub(super) struct EndpointEntry {
    pub(super) url: Option<String>,
    pub(super) path: Option<String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) timeout_ms: Option<i64>,
    pub(super) version: Option<i64>,
    pub(super) recovery_replay_days: Option<i64>,
    /// The kind, its settings and its secrets. `password_file`, `private_key_file` and the like name a file
    /// with the secret.
    pub(super) authentication: Map<String, Value>,
    /// Without it, the endpoint stays paused or active.
    pub(super) paused: Option<bool>,
}

impl MerchantFile {
    /// Reads a file, and the files of secrets that it names.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&read_text(path)?, folder).with_context(|| file_name(path))
    }

    /// Paths of secrets are relative to `folder`. The error has a line for each wrong name or value.
    pub(super) fn parse(text: &str, folder: &Path) -> anyhow::Result<Self> {
        // Unlike a JSON value, a YAML value has no duplicate keys.
        let file: yaml_serde::Value = yaml_serde::from_str(text)?;
        let file = Document::from(serde_json::to_value(file)?);
        file.read(object(|file| read_file(file, folder))).map_err(|invalid| {
            let lines: Vec<_> = invalid.errors.iter().map(describe).collect();
            anyhow!("{}", lines.join("\n  "))
        })
    }
}

fn read_file(file: &Object<'_>, folder: &Path) -> Option<MerchantFile> {
    let mut names = HashSet::new();
    let clients = array(ANY_LENGTH, object(|client| read_client(client, &mut names)));
    let endpoints = object(|endpoints| read_endpoints(endpoints, folder));
    read_fields!(file => MerchantFile {
        merchant: file.required("merchant", parsed(ANY_LENGTH, str::parse::<MerchantId>)),
        name: file.required("name", text(ANY_LENGTH)),
        settings: file.optional("settings", object(read_settings)).map(Option::unwrap_or_default),
        clients: file.optional("clients", clients).map(Option::unwrap_or_default),
        endpoints: file.optional("endpoints", endpoints).map(Option::unwrap_or_default),
        warehouses: file
            .optional("warehouses", object(read_warehouses))
            .map(Option::unwrap_or_default),
    })
}

fn read_settings(settings: &Object<'_>) -> Option<Map<String, Value>> {
    let defaults = serde_json::to_value(Settings::new("")).unwrap_or_default();
    let known = defaults.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    // The name is beside the settings.
    settings.reject_unknown(&known.filter(|name| *name != "name").collect::<Vec<_>>());
    Some(members(settings))
}

fn read_client(client: &Object<'_>, names: &mut HashSet<String>) -> Option<ClientEntry> {
    let name = client.required("name", text(ANY_LENGTH));
    if let Some(name) = &name
        && !names.insert(name.clone())
    {
        client.invalid("name", format!("two clients have the name {name}"));
    }
    let scopes = client.required("scopes", array(ANY_LENGTH, variant::<Scope>));
    read_fields!(client => ClientEntry { name: name, scopes: scopes })
}

fn read_endpoints(
    endpoints: &Object<'_>,
    folder: &Path,
) -> Option<BTreeMap<String, EndpointEntry>> {
    endpoints.reject_unknown(&Interface::all().map(Interface::name).collect::<Vec<_>>());
    let mut read = object(|endpoint| read_endpoint(endpoint, folder));
    let all = endpoints.entries().map(|(name, entry)| Some((name.to_owned(), read(entry)?)));
    // Every endpoint is read before the first invalid one ends it.
    all.collect::<Vec<_>>().into_iter().collect()
}

fn read_endpoint(endpoint: &Object<'_>, folder: &Path) -> Option<EndpointEntry> {
    let authentication = object(|it| Some(read_authentication(it, folder)));
    let authentication = endpoint.optional("authentication", authentication);
    read_fields!(endpoint => EndpointEntry {
        url: endpoint.optional("url", text(ANY_LENGTH)),
        path: endpoint.optional("path", text(ANY_LENGTH)),
        headers: endpoint.optional("headers", object(read_headers)).map(Option::unwrap_or_default),
        timeout_ms: endpoint.optional("timeout_ms", integer(i64::MIN..=i64::MAX)),
        version: endpoint.optional("version", integer(i64::MIN..=i64::MAX)),
        recovery_replay_days: endpoint
            .optional("recovery_replay_days", integer(i64::MIN..=i64::MAX)),
        authentication: authentication.map(|it| complete(it.unwrap_or_default())),
        paused: endpoint.optional("paused", boolean),
    })
}

/// Reads warehouses by our identifier, as the service does.
fn read_warehouses(warehouses: &Object<'_>) -> Option<Warehouses> {
    let mut read = object(Warehouse::read);
    let all = warehouses.entries().map(|(identifier, entry)| {
        if let Err(error) = Warehouse::check_identifier(identifier) {
            return entry.invalid(error.detail.unwrap_or_default());
        }
        Some((identifier.to_owned(), read(entry)?))
    });
    all.collect::<Vec<_>>().into_iter().collect()
}

fn read_headers(headers: &Object<'_>) -> Option<BTreeMap<String, String>> {
    let mut value = text(ANY_LENGTH);
    let all = headers.entries().map(|(name, header)| Some((name.to_owned(), value(header)?)));
    all.collect::<Vec<_>>().into_iter().collect()
}

/// Replaces the names of files by the secrets in them.
fn read_authentication(authentication: &Object<'_>, folder: &Path) -> Map<String, Value> {
    let mut read = members(authentication);
    let secret = |file: &str| read_secret(&folder.join(file)).map_err(|error| format!("{error:#}"));
    for name in SECRETS.into_iter().chain(["certificate"]) {
        let file = format!("{name}_file");
        if let Some(Some(secret)) = authentication.optional(&file, parsed(ANY_LENGTH, secret)) {
            read.remove(&file);
            read.insert(name.to_owned(), secret.into());
        }
    }
    read
}

/// Completes the authentication as the service stores it.
fn complete(mut authentication: Map<String, Value>) -> Map<String, Value> {
    let kind = authentication.get("kind").and_then(Value::as_str).unwrap_or("none");
    let kind = kind.replace('-', "_");
    if kind == "oauth2" {
        authentication.entry("credentials_in").or_insert_with(|| "basic".into());
    }
    if let Some(Value::String(certificate)) = authentication.get_mut("certificate") {
        *certificate = certificate.trim().to_owned();
    }
    authentication.insert("kind".to_owned(), kind.into());
    authentication
}

/// The members of an object that the validation of the plan reads.
fn members(object: &Object<'_>) -> Map<String, Value> {
    object.entries().map(|(name, field)| (name.to_owned(), field.value().to_value())).collect()
}

/// The place of an error in the file, in the form of an invalid value, and the reason.
fn describe(error: &FieldError) -> String {
    let place = error.field.replace("['", ".").replace("']", "");
    match place.strip_prefix("$.") {
        Some(place) => one_line(&format!("{place}: {}", reason(error))),
        None => one_line(&reason(error)),
    }
}

/// The reason of an error in plain words.
pub(super) fn reason(error: &FieldError) -> String {
    match (&error.detail, error.code) {
        (Some(detail), _) => detail.clone(),
        (None, Code::MissingField) => "is required".to_owned(),
        (None, code) => code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check_error(text: &str, expected: &Expect) {
        let error = MerchantFile::parse(text, Path::new("nowhere")).unwrap_err();
        expected.assert_eq(&format!("{error:#}"));
    }

    #[test]
    fn every_wrong_name_is_listed() {
        check_error(
            "merchant: A B
colour: red
settings: {curency: EUR, return_window: 30}
clients:
- {name: Shop, scopes: [orders]}
- {name: Shop, scopes: [order], scope: orders}
endpoints:
  parcels: {}
  exchange-order: {uri: x, headers: {X-Shop: 7}}
  rma: {timeout: 5, authentication: {kind: basic, password_file: password.txt}}
warehouses:
  dock 7: {}
  reno: {external_id: DC-7, address: {name: Dock 7, street: 7 Dock Street, city: Reno, state: NV}}
",
            &expect![[r#"
                colour: unknown field: known are merchant, name, settings, clients, endpoints, warehouses
                  merchant: must be 1 to 63 lower-case letters, digits or hyphens, beginning with a letter or digit
                  name: is required
                  settings.curency: unknown field: known are appearance, base_url, concept, currency, express_max_weight, final_sale_tags, mails, managed_receiving, policy, return_window_days, returns, strict_amounts, strict_refund_dates, support_contact, time_zone
                  settings.return_window: unknown field: known are appearance, base_url, concept, currency, express_max_weight, final_sale_tags, mails, managed_receiving, policy, return_window_days, returns, strict_amounts, strict_refund_dates, support_contact, time_zone
                  clients[1].name: two clients have the name Shop
                  clients[1].scopes[0]: must be one of orders, returns, warehouse, carrier, read, replay, manage, operator, shopper
                  clients[1].scope: unknown field: known are name, scopes
                  endpoints.parcels: unknown field: known are rma, exchange-order, outbound-asn, inventory-receipt, drop-shipment-confirmation, drop-shipment-cancellation, drop-shipment-partial-cancellation, notice, exchange-variants
                  endpoints.exchange-order.uri: unknown field: known are url, path, headers, timeout_ms, version, recovery_replay_days, authentication, paused
                  endpoints.exchange-order.headers.X-Shop: expected a string, found an integer
                  endpoints.rma.authentication.password_file: cannot read nowhere/password.txt: No such file or directory (os error 2)
                  endpoints.rma.timeout: unknown field: known are url, path, headers, timeout_ms, version, recovery_replay_days, authentication, paused
                  warehouses.dock 7: must be 1 to 63 letters, digits, hyphens or underscores
                  warehouses.reno.external_id: unknown field: known are external_identifier, address, settings
                  warehouses.reno.address.zip: is required"#]],
        );
    }

    #[test]
    fn a_file_that_is_not_an_object_or_has_a_key_twice_is_an_error() {
        check_error("", &expect!["expected an object, found null"]);
        check_error(
            "merchant: acme\nmerchant: nova\n",
            &expect![[r#"duplicate entry with key "merchant""#]],
        );
        check_error(
            "merchant: [",
            &expect![
                "did not find expected node content at line 2 column 1, while parsing a flow node"
            ],
        );
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
    }
}
