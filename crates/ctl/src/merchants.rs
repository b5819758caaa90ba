//! `backhaul merchant`: merchants and their settings.

mod appearance;
mod apply;
mod describe;
mod mails;
mod partial;
mod settings;

use clap::{Args, Subcommand};
use domain::access::MerchantId;
use serde_json::{Value, json};

use crate::api_client::NO_QUERY;
use crate::connection::{OperatorArgs, OperatorCommand};
use crate::output::{Format, count};
use crate::usage_error;

use self::describe::{COLUMNS, describe};

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Add a merchant
    #[command(after_help = "\
Example:
  backhaul merchant add acme --name 'Acme Outdoor' \\
      --time-zone America/New_York --currency USD")]
    Add(Box<Add>),
    /// List all merchants
    #[command(after_help = "\
Example:
  backhaul merchant list")]
    List,
    /// Show a merchant with its settings and endpoints
    #[command(after_help = "\
Example:
  backhaul merchant show acme")]
    Show {
        /// Identifier of the merchant
        merchant: MerchantId,
    },
    /// Change settings of a merchant; settings without a flag stay as they are
    #[command(after_help = "\
Examples:
  backhaul merchant set acme --return-window-days 60 --strict-amounts true
  backhaul merchant set acme --base-url https://api.acme.example/hooks
  backhaul merchant set acme --final-sale-tag Clearance --final-sale-tag Outlet
  backhaul merchant set acme \\
      --return-reason 'TOO_SMALL:exchange=Too small' \\
      --return-reason OTHER=Another
  backhaul merchant set acme --return-method mail-back=595 \\
      --gift-card-sku GIFT --gift-card-bonus-cents 500")]
    Set(Box<Set>),
    /// Make a merchant with its clients, endpoints and warehouses as a YAML file says
    ///
    /// Only missing changes are made, so that the command can be repeated. Nothing that the file does not
    /// name is removed. Secrets of new clients and endpoints are shown once.
    #[command(after_help = "\
Examples:
  backhaul merchant apply acme.yaml --dry-run
  backhaul merchant apply acme.yaml
  backhaul merchant apply acme.yaml --update-secrets

acme.yaml:
  merchant: acme
  name: Acme Outdoor
  settings:
    currency: USD
    base_url: https://api.acme.example/hooks
  clients:
    - name: Acme shop
      scopes: [orders, returns]
  endpoints:
    rma:
      authentication:
        kind: basic
        username: backhaul
        password_file: password.txt
  warehouses:
    reno:
      external_identifier: DC-7")]
    Apply(apply::Apply),
    /// Show or change the appearance of a merchant's returns portal
    #[command(after_help = "\
Examples:
  backhaul merchant appearance acme
  backhaul merchant appearance acme --set name=Acme \\
      --set colors.primary=#0b6e4f --set languages=en,de
  backhaul merchant appearance acme --set withdrawal=true \\
      --set host_names=returns.acme.example
  backhaul merchant appearance acme --file appearance.json

appearance.json:
  { \"reason_labels\": { \"TOO_SMALL\": { \"en\": \"Too small\", \"de\": \"Zu klein\" } } }")]
    Appearance(Box<appearance::Appearance>),
    /// Show or change the mails to a merchant's shoppers about their returns
    #[command(after_help = "\
Examples:
  backhaul merchant mails acme
  backhaul merchant mails acme --set reply_to=returns@acme.example \\
      --set sender_name='Acme Returns'
  backhaul merchant mails acme --set events.received=false
  backhaul merchant mails acme --file mails.json

mails.json:
  { \"texts\": { \"en\": { \"confirmed\": { \"subject\": \"Thank you: {rma}\" } } } }")]
    Mails(mails::Mails),
    /// Publish every merchant and every active revocation again, for a service that lost its replica
    #[command(after_help = "\
Example:
  backhaul merchant republish")]
    Republish,
}

#[derive(Args)]
pub(crate) struct Add {
    /// Permanent identifier in tokens, headers and messages: lower-case letters, digits, hyphens
    merchant: MerchantId,
    /// Display name
    #[arg(long)]
    name: String,
    #[command(flatten)]
    settings: settings::SettingsArgs,
}

#[derive(Args)]
pub(crate) struct Set {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// Display name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    settings: settings::SettingsArgs,
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<()> {
    let OperatorCommand { operator, command } = arguments;
    let format = operator.format();
    let merchant = match command {
        Command::Add(add) => {
            let Add { merchant, name, settings } = *add;
            let mut body = settings.body(Some(name));
            body.insert("identifier".to_owned(), json!(merchant));
            operator.connect().await?.post(&["v1", "merchants"], &body.into()).await?
        }
        Command::List => return list(&operator, format).await,
        Command::Apply(apply) => return apply::run(&operator, &apply).await,
        Command::Appearance(appearance) => return appearance::run(&operator, *appearance).await,
        Command::Mails(mails) => return mails::run(&operator, mails).await,
        Command::Show { merchant } => {
            operator.connect().await?.get(&["v1", "merchants", merchant.as_str()]).await?
        }
        Command::Set(set) => {
            let Set { merchant, name, settings } = *set;
            let body = settings.body(name);
            if body.is_empty() {
                return Err(usage_error("no setting to change: see backhaul merchant set --help"));
            }
            let path = ["v1", "merchants", merchant.as_str()];
            operator.connect().await?.patch(&path, &body.into()).await?
        }
        Command::Republish => return republish(&operator, format).await,
    };
    format.print(&merchant, describe)
}

async fn republish(operator: &OperatorArgs, format: Format) -> anyhow::Result<()> {
    let path = ["v1", "merchants", "republish"];
    let response = operator.connect().await?.post(&path, &json!({})).await?;
    format.print(&response, |response| {
        let merchants = response.get("merchants").and_then(Value::as_u64);
        let merchants = count(merchants.unwrap_or_default(), "merchant");
        format!("published {merchants} and all active revocations\n")
    })
}

async fn list(operator: &OperatorArgs, format: Format) -> anyhow::Result<()> {
    let auth = operator.connect().await?;
    let merchants = auth.list(&["v1", "merchants"], "merchants", NO_QUERY, usize::MAX).await?;
    format.print_table(&merchants, "/merchants", COLUMNS)
}
