//! Validation of a plan before its first request, with the readers that the auth service uses.
//!
//! Only the service knows which addresses its endpoints may have, and whether a host name is taken.

use anyhow::bail;
use domain::access::Scope;
use domain::json::{Document, FieldError, Object, ValidationError, array, object, text, variant};
use domain::merchant::guard::Guard;
use domain::merchant::{Endpoint, Interface, Settings, SettingsChange, read_new_merchant};
use domain::printable::one_line;
use domain::warehouse::{Warehouse, Warehouses};
use serde::Deserialize as _;
use serde_json::Value;

use super::file::reason;
use super::plan::{Change, Plan};

/// Fails if the service would reject a change. The error has a line for each invalid value.
pub(super) fn check(plan: &Plan, merchant: Option<&Value>) -> anyhow::Result<()> {
    let guard = Guard::new(false, &["0.0.0.0/0".parse()?, "::/0".parse()?]);
    // Settings that this version cannot read are checked by the service only.
    let settings = merchant.and_then(|merchant| Settings::deserialize(merchant).ok());
    let warehouses = merchant.and_then(|merchant| merchant.get("warehouses"));
    let warehouses = warehouses.and_then(|it| Warehouses::deserialize(it).ok()).unwrap_or_default();
    let mut validation = Validation { guard, settings, warehouses, errors: Vec::new() };
    for change in &plan.changes {
        validation.check(change);
    }
    if validation.errors.is_empty() {
        return Ok(());
    }
    bail!("{}", validation.errors.join("\n  "))
}

struct Validation {
    guard: Guard,
    /// The settings after the changes so far, if they are valid.
    settings: Option<Settings>,
    /// The warehouses after the changes so far.
    warehouses: Warehouses,
    errors: Vec<String>,
}

impl Validation {
    fn check(&mut self, change: &Change) {
        let checked = match change {
            Change::CreateMerchant { body, .. } => self.create_merchant(body),
            Change::UpdateMerchant { body, .. } => self.update_merchant(body),
            Change::CreateClient { body, .. } => Document::from(body).read(object(read_client)),
            Change::SetEndpoint { interface, body, .. } => self.set_endpoint(interface, body),
            Change::SetWarehouse { identifier, body, .. } => {
                // The file reads its warehouses as the service does.
                let warehouse = Warehouse::deserialize(body).unwrap_or_default();
                self.warehouses.insert(identifier.clone(), warehouse);
                Ok(())
            }
            Change::PauseEndpoint { .. } => Ok(()),
        };
        if let Err(invalid) = checked {
            self.errors.extend(invalid.errors.iter().map(|error| describe(change, error)));
        }
    }

    fn create_merchant(&mut self, body: &Value) -> Result<(), ValidationError> {
        let read = object(|body| read_new_merchant(body, &self.guard));
        let (_, settings) = Document::from(body).read(read)?;
        self.settings = Some(settings);
        Ok(())
    }

    fn update_merchant(&mut self, body: &Value) -> Result<(), ValidationError> {
        let read = object(|body| match &self.settings {
            Some(settings) => {
                SettingsChange::read_for(body, &self.guard, settings, &self.warehouses)
            }
            None => SettingsChange::read(body, &self.guard),
        });
        let change = Document::from(body).read(read)?;
        let Self { settings, warehouses, .. } = self;
        settings.as_mut().map_or(Ok(()), |settings| change.apply(settings, warehouses))
    }

    fn set_endpoint(&self, interface: &str, body: &Value) -> Result<(), ValidationError> {
        // The file has only known interfaces.
        let Ok(interface) = interface.parse::<Interface>() else { return Ok(()) };
        let read = object(|body| Endpoint::read(body, interface, &self.guard));
        let endpoint = Document::from(body).read(read)?;
        let has_base_url = self.settings.as_ref().is_none_or(|it| it.base_url.is_some());
        if endpoint.url.is_none() && !has_base_url {
            let detail = "the merchant has no base_url: set it, or give the endpoint a url";
            return Err(FieldError::invalid("$.url", detail).into());
        }
        Ok(())
    }
}

fn read_client(body: &Object<'_>) -> Option<()> {
    let name = body.required("name", text(1..=200));
    let scopes = body.required("scopes", array(1..=Scope::ALL.len(), variant::<Scope>));
    let of_platform = [Scope::Operator, Scope::Shopper];
    if let Some(scope) = scopes?.iter().find(|scope| of_platform.contains(scope)) {
        body.invalid("scopes", format!("a client of a merchant cannot have the scope {scope}"));
    }
    name?;
    Some(())
}

/// The place of an invalid value in the file, and the reason.
fn describe(change: &Change, error: &FieldError) -> String {
    let field = error.field.strip_prefix('$').unwrap_or(&error.field);
    let place = match (change, field) {
        (Change::CreateMerchant { .. }, ".identifier") => "merchant".to_owned(),
        (Change::CreateMerchant { .. } | Change::UpdateMerchant { .. }, ".name") => {
            "name".to_owned()
        }
        _ => format!("{}{field}", change.place()),
    };
    one_line(&format!("{place}: {}", reason(error)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;
    use crate::merchants::apply::file::MerchantFile;

    #[track_caller]
    fn check_file(rest: &str, merchant: Option<&Value>, expected: &Expect) {
        let text = format!("merchant: acme\nname: Acme\n{rest}");
        let file = MerchantFile::parse(&text, Path::new("")).unwrap();
        let plan = Plan::new(&file, merchant, &[], false).unwrap();
        let error = check(&plan, merchant).err().map(|error| error.to_string());
        expected.assert_eq(&error.unwrap_or_default());
    }

    #[test]
    fn every_value_that_the_service_rejects_is_named() {
        check_file(
            "settings: {currency: EURO, return_window_days: 5000}
clients: [{name: Shop, scopes: [operator]}]
endpoints:
  exchange-order: {url: https://acme.example/x, authentication: {kind: bearer, username: u, password: p}}
  rma: {url: https://acme.example/rmas#frag}
",
            None,
            &expect![[r"
                settings.currency: must be an ISO 4217 currency code, like USD
                  settings.return_window_days: must be between 0 and 3650
                  clients.Shop.scopes: a client of a merchant cannot have the scope operator
                  endpoints.exchange-order.authentication.password: unknown field: known are kind, token
                  endpoints.exchange-order.authentication.username: unknown field: known are kind, token
                  endpoints.exchange-order.authentication.token: is required
                  endpoints.rma.url: must be an http or https URL without credentials or fragment"]],
        );
    }

    #[test]
    fn a_rule_names_a_warehouse_of_the_merchant_or_of_the_file() {
        let rules = "settings: {policy: {rules: [{id: outlet, then: {return_to: reno}}]}}\n";
        let address = "{name: Dock 7, street: 7 Dock Street, city: Reno, state: NV, zip: '89501'}";
        let place = "settings.policy.rules[0].then.return_to";
        let check = |warehouses: &str, merchant: Option<&Value>, expected: &str| {
            let file = format!("merchant: acme\nname: Acme\n{rules}{warehouses}");
            let file = MerchantFile::parse(&file, Path::new("")).unwrap();
            let plan = Plan::new(&file, merchant, &[], false).unwrap();
            let error = check(&plan, merchant).err().map(|error| error.to_string());
            assert_eq!(error.unwrap_or_default(), expected);
        };
        let unknown = format!("{place}: the merchant has no warehouse reno");
        check("", None, &unknown);
        check("warehouses: {reno: {}}\n", None, &format!("{place}: warehouse reno has no address"));
        let with_reno = format!("warehouses: {{reno: {{address: {address}}}}}\n");
        check(&with_reno, None, "");
        let mut acme = serde_json::to_value(Settings::new("Acme")).unwrap();
        check("", Some(&acme), &unknown);
        check(&with_reno, Some(&acme), "");
        let stored = json!({ "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501" });
        acme["warehouses"] = json!({ "reno": { "identifier": "reno", "address": stored } });
        check("", Some(&acme), "");
    }

    #[test]
    fn an_endpoint_needs_a_url_of_its_own_or_of_the_merchant() {
        let missing = expect![
            "endpoints.rma.url: the merchant has no base_url: set it, or give the endpoint a url"
        ];
        check_file("endpoints: {rma: {}}\n", None, &missing);
        let mut acme = serde_json::to_value(Settings::new("Acme")).unwrap();
        check_file("endpoints: {rma: {}}\n", Some(&acme), &missing);
        acme["base_url"] = json!("https://acme.example/");
        check_file("endpoints: {rma: {}}\n", Some(&acme), &expect![""]);
        let with_base = "settings: {base_url: https://acme.example}\nendpoints: {rma: {}}\n";
        check_file(with_base, None, &expect![""]);
        // Only the service knows which addresses are allowed.
        check_file("endpoints: {rma: {url: 'http://127.0.0.1:8099/'}}\n", None, &expect![""]);
    }
}
