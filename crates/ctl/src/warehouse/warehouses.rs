//! `backhaul warehouse`: the warehouses of a merchant.

use clap::{Args, Subcommand};
use domain::access::MerchantId;
use serde_json::{Map, Value, json};

use crate::api_client::ApiClient;
use crate::connection::OperatorCommand;
use crate::output::{Column, computed, join, text_at, value};

const COLUMNS: &[Column] = &[
    value("identifier", "/identifier"),
    value("external identifier", "/external_identifier"),
    value("stock transfers", "/settings/stock_transfer_identifier"),
    computed("address", address),
    computed("returns", |it| match it.pointer("/settings/receives_returns") {
        Some(Value::Bool(true)) => "yes".to_owned(),
        _ => "-".to_owned(),
    }),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the warehouses of a merchant
    #[command(after_help = "\
Example:
  backhaul warehouse list acme")]
    List {
        /// Identifier of the merchant
        merchant: MerchantId,
    },
    /// Show a warehouse
    #[command(after_help = "\
Example:
  backhaul warehouse show acme reno")]
    Show(Target),
    /// Add a warehouse; one with the same identifier is not replaced
    ///
    /// A report of a shipment that names the warehouse takes its identifiers and address. The address needs all
    /// of --name, --street, --city, --state and --zip.
    #[command(after_help = "\
Example:
  backhaul warehouse add acme reno --external-identifier DC-7 \\
      --stock-transfer-identifier STO-7 --name 'Dock 7' \\
      --street '7 Dock Street' --city Reno --state NV --zip 89501")]
    Add(Box<Set>),
    /// Replace all settings of a warehouse, or add it
    ///
    /// The address needs all of --name, --street, --city, --state and --zip.
    #[command(after_help = "\
Example:
  backhaul warehouse set acme reno --external-identifier DC-7 \\
      --stock-transfer-identifier STO-7 --name 'Dock 7' \\
      --street '7 Dock Street' --city Reno --state NV --zip 89501")]
    Set(Box<Set>),
    /// Delete a warehouse; reported shipments stay as they are
    #[command(after_help = "\
Example:
  backhaul warehouse delete acme reno")]
    Delete(Target),
}

#[derive(Args)]
pub(crate) struct Target {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// Our identifier of the warehouse
    warehouse: String,
}

impl Target {
    fn path(&self) -> [&str; 5] {
        ["v1", "merchants", self.merchant.as_str(), "warehouses", &self.warehouse]
    }
}

#[derive(Args)]
pub(crate) struct Set {
    #[command(flatten)]
    target: Target,
    /// Identifier in the merchant's systems
    #[arg(long, value_name = "ID")]
    external_identifier: Option<String>,
    /// Identifier as the destination of stock transfers
    #[arg(long, value_name = "ID")]
    stock_transfer_identifier: Option<String>,
    /// Let labels of returned parcels have this address, and no other one
    #[arg(long, requires = "country")]
    receives_returns: bool,
    #[command(flatten)]
    address: Address,
}

#[derive(Args)]
#[command(next_help_heading = "Address")]
struct Address {
    /// Name at the address
    #[arg(long, requires_all = ["street", "city", "state", "zip"])]
    name: Option<String>,
    /// Company
    #[arg(long, requires = "name")]
    company: Option<String>,
    /// Street and number
    #[arg(long, requires = "name")]
    street: Option<String>,
    /// Second line of the street
    #[arg(long, requires = "name")]
    street2: Option<String>,
    /// City
    #[arg(long, requires = "name")]
    city: Option<String>,
    /// State
    #[arg(long, requires = "name")]
    state: Option<String>,
    /// ZIP code
    #[arg(long, requires = "name")]
    zip: Option<String>,
    /// ISO code of the country, for labels
    #[arg(long, requires = "name", value_name = "CODE")]
    country: Option<String>,
}

impl Set {
    async fn send(mut self, client: &ApiClient) -> anyhow::Result<Value> {
        let target = Target {
            merchant: self.target.merchant.clone(),
            warehouse: std::mem::take(&mut self.target.warehouse),
        };
        client.put(&target.path(), &self.body()).await
    }

    fn body(self) -> Value {
        let Address { name, company, street, street2, city, state, zip, country } = self.address;
        let parts = [
            ("name", name),
            ("company", company),
            ("street", street),
            ("street2", street2),
            ("city", city),
            ("state", state),
            ("zip", zip),
        ];
        let address: Map<_, _> = parts
            .into_iter()
            .filter_map(|(field, text)| Some((field.to_owned(), Value::from(text?))))
            .collect();
        json!({
            "external_identifier": self.external_identifier,
            "settings": {
                "stock_transfer_identifier": self.stock_transfer_identifier,
                "country_code": country,
                "receives_returns": self.receives_returns,
            },
            "address": (!address.is_empty()).then_some(address),
        })
    }
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<()> {
    let OperatorCommand { operator, command } = arguments;
    let format = operator.format();
    match command {
        Command::List { merchant } => {
            let path = ["v1", "merchants", merchant.as_str(), "warehouses"];
            let response = operator.connect().await?.get(&path).await?;
            format.print_table(&response, "/warehouses", COLUMNS)
        }
        Command::Show(target) => {
            let response = operator.connect().await?.get(&target.path()).await?;
            format.print_details(&response, COLUMNS)
        }
        Command::Add(set) => {
            let client = operator.connect().await?.with_header("If-None-Match", "*");
            format.print_details(&set.send(&client).await?, COLUMNS)
        }
        Command::Set(set) => {
            let client = operator.connect().await?;
            format.print_details(&set.send(&client).await?, COLUMNS)
        }
        Command::Delete(target) => {
            let response = operator.connect().await?.delete(&target.path()).await?;
            let Target { merchant, warehouse } = target;
            format.print(&response, |_| format!("deleted warehouse {warehouse} of {merchant}\n"))
        }
    }
}

/// The address in one line.
fn address(warehouse: &Value) -> String {
    let parts = ["name", "company", "street", "street2", "city", "state", "zip"];
    let texts = parts.iter().map(|part| text_at(warehouse, &format!("/address/{part}")));
    let country = text_at(warehouse, "/settings/country_code");
    join(texts.chain([country]).filter(|text| text != "-"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use expect_test::expect;

    use super::*;
    use crate::output::details;

    #[derive(Parser)]
    struct Cli {
        #[command(subcommand)]
        command: Command,
    }

    #[test]
    fn a_warehouse_needs_a_whole_address_or_none() {
        let set = |line: &[&str]| {
            let line = ["x", "set", "acme", "reno"].iter().chain(line);
            let Command::Set(set) = Cli::try_parse_from(line).ok()?.command else { return None };
            Some(set.body())
        };
        let bare = set(&["--external-identifier", "DC-7"]).unwrap();
        assert_eq!(
            (&bare["external_identifier"], &bare["address"]),
            (&json!("DC-7"), &Value::Null)
        );
        assert_eq!(set(&["--name", "Dock 7", "--city", "Reno"]), None);
        let whole = ["--name", "D", "--street", "S", "--city", "C", "--state", "NV", "--zip", "1"];
        let address = json!({ "name": "D", "street": "S", "city": "C", "state": "NV", "zip": "1" });
        assert_eq!(set(&whole).unwrap()["address"], address);
        let receiving = [&whole[..], &["--receives-returns"]].concat();
        assert_eq!(set(&receiving), None);
        let receiving = [&receiving[..], &["--country", "US"]].concat();
        let settings = json!({
            "stock_transfer_identifier": null, "country_code": "US", "receives_returns": true,
        });
        assert_eq!(set(&receiving).unwrap()["settings"], settings);
    }

    #[test]
    fn a_warehouse_is_shown_with_its_address() {
        let warehouse = json!({
            "identifier": "reno", "external_identifier": "DC-7",
            "settings": { "stock_transfer_identifier": null, "country_code": "US", "receives_returns": true },
            "address": { "name": "Dock 7", "street": "7 Dock Street", "city": "Reno", "state": "NV", "zip": "89501" },
        });
        expect![[r#"
            identifier           reno
            external identifier  DC-7
            stock transfers      -
            address              Dock 7, 7 Dock Street, Reno, NV, 89501, US
            returns              yes
        "#]]
        .assert_eq(&details(&warehouse, COLUMNS));
    }
}
