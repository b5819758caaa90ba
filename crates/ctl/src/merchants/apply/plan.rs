//! The changes that make a merchant as its file says.

use anyhow::bail;
use domain::access::Scopes;
use domain::merchant::REDACTED;
use domain::printable::one_line;
use domain::warehouse::Warehouse;
use serde::{Deserialize as _, Serialize};
use serde_json::{Map, Value, json};

use super::compare::{Difference, differences, header_object};
use super::file::{ClientEntry, EndpointEntry, MerchantFile, SECRETS};
use crate::output::{items, line_at, text_at};

/// A change, with the body of its request, which the output does not show.
#[derive(Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(super) enum Change {
    CreateMerchant {
        name: String,
        fields: Vec<Difference>,
        #[serde(skip)]
        body: Value,
    },
    UpdateMerchant {
        name: String,
        fields: Vec<Difference>,
        #[serde(skip)]
        body: Value,
    },
    CreateClient {
        name: String,
        #[serde(rename = "client")]
        body: Value,
    },
    SetEndpoint {
        interface: String,
        is_new: bool,
        fields: Vec<Difference>,
        #[serde(skip)]
        body: Value,
    },
    PauseEndpoint {
        interface: String,
        paused: bool,
    },
    SetWarehouse {
        identifier: String,
        is_new: bool,
        fields: Vec<Difference>,
        #[serde(skip)]
        body: Value,
    },
}

impl Change {
    /// The place of the change in the file.
    pub(super) fn place(&self) -> String {
        match self {
            Self::CreateMerchant { .. } | Self::UpdateMerchant { .. } => "settings".to_owned(),
            Self::CreateClient { name, .. } => format!("clients.{name}"),
            Self::SetEndpoint { interface, .. } | Self::PauseEndpoint { interface, .. } => {
                format!("endpoints.{interface}")
            }
            Self::SetWarehouse { identifier, .. } => format!("warehouses.{identifier}"),
        }
    }
}

/// Changes in the order in which they are made.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) changes: Vec<Change>,
}

impl Plan {
    /// Compares a file with a merchant, which has its warehouses by identifier, and with its clients.
    pub(super) fn new(
        file: &MerchantFile,
        merchant: Option<&Value>,
        clients: &[Value],
        update_secrets: bool,
    ) -> anyhow::Result<Self> {
        let mut plan = Self::default();
        let name = file.merchant.to_string();
        let mut settings = file.settings.clone();
        settings.insert("name".to_owned(), file.name.clone().into());
        if merchant.is_none() {
            let later = take_rules_about_warehouses(&mut settings);
            plan.create_merchant(name.clone(), settings);
            settings = later;
        }
        // Before the rules that name them.
        for (identifier, warehouse) in &file.warehouses {
            let current = merchant.and_then(|it| it.get("warehouses")?.get(identifier));
            plan.plan_warehouse(identifier, warehouse, current)?;
        }
        plan.update_merchant(name, settings, merchant);
        for client in &file.clients {
            plan.plan_client(file, client, clients)?;
        }
        for (interface, endpoint) in &file.endpoints {
            let current = merchant.and_then(|it| it.get("endpoints")?.get(interface));
            plan.plan_endpoint(interface, endpoint, current, update_secrets);
        }
        Ok(plan)
    }

    fn create_merchant(&mut self, name: String, mut settings: Map<String, Value>) {
        let fields = differences(&settings, None);
        settings.insert("identifier".to_owned(), name.clone().into());
        self.changes.push(Change::CreateMerchant { name, fields, body: settings.into() });
    }

    fn update_merchant(
        &mut self,
        name: String,
        settings: Map<String, Value>,
        merchant: Option<&Value>,
    ) {
        let fields = differences(&settings, merchant);
        if !fields.is_empty() {
            self.changes.push(Change::UpdateMerchant { name, fields, body: settings.into() });
        }
    }

    fn plan_client(
        &mut self,
        file: &MerchantFile,
        client: &ClientEntry,
        clients: &[Value],
    ) -> anyhow::Result<()> {
        let ClientEntry { name, scopes } = client;
        let is_same = |it: &&Value| {
            it.get("name") == Some(&json!(name)) && it.get("revoked_at").is_none_or(Value::is_null)
        };
        let wanted = Scopes::from_iter(scopes.iter().copied()).to_string();
        match clients.iter().find(is_same) {
            Some(found) if text_at(found, "/scope") == wanted => {}
            Some(found) => bail!(
                "client {} ({}) has the scopes {}, not {wanted}, and they cannot be changed: \
                 revoke it with backhaul client revoke, or choose another name",
                line_at(found, "/client_id"),
                one_line(name),
                line_at(found, "/scope"),
            ),
            None => {
                let body = json!({ "merchant": file.merchant, "name": name, "scopes": scopes });
                self.changes.push(Change::CreateClient { name: name.clone(), body });
            }
        }
        Ok(())
    }

    fn plan_endpoint(
        &mut self,
        interface: &str,
        endpoint: &EndpointEntry,
        current: Option<&Value>,
        update_secrets: bool,
    ) {
        let wanted = endpoint.state();
        let mut fields = differences(&wanted, Some(current.unwrap_or(&Value::Null)));
        fields.iter_mut().for_each(hide_secrets);
        let is_new = current.is_none();
        if is_new || !fields.is_empty() || (update_secrets && endpoint.has_secrets()) {
            // The request has no empty members: it replaces the whole endpoint.
            let body = wanted.into_iter().filter(|(_, value)| !value.is_null()).collect();
            let interface = interface.to_owned();
            self.changes.push(Change::SetEndpoint { interface, is_new, fields, body });
        }
        let is_paused = current.and_then(|it| it.get("paused")?.as_bool()).unwrap_or_default();
        if let Some(paused) = endpoint.paused.filter(|paused| *paused != is_paused) {
            self.changes.push(Change::PauseEndpoint { interface: interface.to_owned(), paused });
        }
    }

    fn plan_warehouse(
        &mut self,
        identifier: &str,
        warehouse: &Warehouse,
        current: Option<&Value>,
    ) -> anyhow::Result<()> {
        let body = serde_json::to_value(warehouse)?;
        let wanted = Map::deserialize(&body)?;
        let fields = differences(&wanted, Some(current.unwrap_or(&Value::Null)));
        let is_new = current.is_none();
        if is_new || !fields.is_empty() {
            let identifier = identifier.to_owned();
            self.changes.push(Change::SetWarehouse { identifier, is_new, fields, body });
        }
        Ok(())
    }
}

/// Takes the policy out of the settings, if its rules name warehouses.
fn take_rules_about_warehouses(settings: &mut Map<String, Value>) -> Map<String, Value> {
    let rules = settings.get("policy").and_then(|policy| policy.get("rules")?.as_array());
    let names_warehouse =
        |rule: &Value| rule.pointer("/then/return_to").is_some_and(|it| !it.is_null());
    if !rules.into_iter().flatten().any(names_warehouse) {
        return Map::new();
    }
    settings.remove_entry("policy").into_iter().collect()
}

impl EndpointEntry {
    fn state(&self) -> Map<String, Value> {
        Map::from_iter([
            ("url".to_owned(), json!(self.url)),
            ("path".to_owned(), json!(self.path)),
            ("headers".to_owned(), header_object(&self.headers)),
            ("authentication".to_owned(), self.authentication.clone().into()),
            ("timeout_ms".to_owned(), json!(self.timeout_ms)),
            ("version".to_owned(), json!(self.version)),
            ("recovery_replay_days".to_owned(), json!(self.recovery_replay_days)),
        ])
    }

    fn has_secrets(&self) -> bool {
        let has_query = self.url.as_ref().is_some_and(|url| url.contains('?'));
        let has_credentials = self.authentication.get("kind") != Some(&json!("none"));
        has_query || has_credentials || !self.headers.is_empty()
    }
}

/// Hides the secrets of an endpoint in the output.
fn hide_secrets(difference: &mut Difference) {
    let hide = |value: &mut Value| *value = REDACTED.into();
    match (difference.field.as_str(), &mut difference.to) {
        ("headers", Value::Object(headers)) => headers.values_mut().for_each(hide),
        ("authentication", Value::Object(members)) => {
            let members = members.iter_mut().filter(|(name, _)| SECRETS.contains(&name.as_str()));
            members.for_each(|(_, value)| hide(value));
        }
        ("url", Value::String(url)) => {
            if let Some((base, _)) = url.split_once('?') {
                *url = format!("{base}?{REDACTED}");
            }
        }
        _ => {}
    }
}

/// A change as lines: `+` for something new, `~` for a changed value.
pub(super) fn describe(change: &Value) -> String {
    let text = |pointer: &str| line_at(change, pointer);
    let sign = if change.get("is_new") == Some(&json!(true)) { '+' } else { '~' };
    let heading = match text("/change").as_str() {
        "create_merchant" => format!("+ merchant {}\n", text("/name")),
        "update_merchant" => format!("~ merchant {}\n", text("/name")),
        "create_client" => {
            format!("+ client {} with the scopes {}\n", text("/name"), text("/client/scopes"))
        }
        "set_endpoint" => format!("{sign} endpoint {}\n", text("/interface")),
        "set_warehouse" => format!("{sign} warehouse {}\n", text("/identifier")),
        _ => {
            let state =
                if change.get("paused") == Some(&json!(true)) { "paused" } else { "active" };
            format!("~ endpoint {} is {state}\n", text("/interface"))
        }
    };
    let is_new = heading.starts_with('+');
    let fields = items(change, "/fields").iter().map(|field| {
        let name = line_at(field, "/field");
        let from = field.get("from");
        let to = field.get("to");
        let value = |value: Option<&Value>| match value {
            None | Some(Value::Null) => "none".to_owned(),
            Some(Value::String(text)) => one_line(text),
            Some(other) => other.to_string(),
        };
        if is_new {
            format!("    {name}: {}\n", value(to))
        } else {
            format!("    {name}: {} -> {}\n", value(from), value(to))
        }
    });
    heading + &fields.collect::<String>()
}

#[cfg(test)]
mod tests;
