//! `backhaul endpoint`: the URLs that receive a merchant's messages.

mod authentication;
mod backlog;
mod check;
mod samples;
mod view;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::access::MerchantId;
use domain::merchant::Interface;
use serde_json::{Map, Value, json};

use crate::clients::{RotationArgs, suggest_force};
use crate::connection::{OperatorArgs, OperatorCommand};
use crate::output::Format;
pub(crate) use check::describe as describe_check;
use view::describe;
pub(crate) use view::endpoints_table;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Set the URL, headers, timeout, message version and authentication of an endpoint
    ///
    /// Replaces all of these. The signing secret and the paused state stay. For a new
    /// endpoint the command creates a signing secret and shows it once. Each endpoint
    /// of a merchant has a signing secret of its own.
    #[command(after_help = "\
Examples:
  backhaul endpoint set acme rma --url https://api.acme.example/rmas
  backhaul endpoint set acme exchange-order --path /v2/exchanges \\
      --header 'X-Shop: 7' --timeout-ms 5000
  backhaul endpoint set acme rma --auth basic \\
      --username backhaul --password-file - < password
  backhaul endpoint set acme rma --auth oauth2 \\
      --token-url https://id.acme.example/token \\
      --client-id backhaul --client-secret-file secret.txt
  backhaul endpoint set acme rma --auth client-certificate \\
      --certificate-file client.pem --private-key-file client.key
  backhaul endpoint set acme rma --auth aws-sigv4 --region eu-central-1 \\
      --access-key-id AKIDEXAMPLE --secret-access-key-file key.txt")]
    Set(Box<Set>),
    /// List the endpoints of a merchant
    #[command(after_help = "\
Example:
  backhaul endpoint list acme")]
    List {
        /// Identifier of the merchant
        merchant: MerchantId,
    },
    /// Remove an endpoint; its messages can no longer be delivered
    #[command(after_help = "\
Example:
  backhaul endpoint remove acme rma")]
    Remove(Target),
    /// Create a new signing secret; messages carry both signatures for the overlap
    ///
    /// Fails while a secret of an earlier rotation still signs, because the new rotation would end it at
    /// once.
    #[command(after_help = "\
Examples:
  backhaul endpoint rotate-secret acme rma --overlap 2days
  backhaul endpoint rotate-secret acme rma --overlap 0s --force")]
    RotateSecret {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        rotation: RotationArgs,
    },
    /// Show the state and health of endpoints and their waiting messages
    #[command(after_help = "\
Examples:
  backhaul endpoint backlog acme
  backhaul endpoint backlog --state failing")]
    Backlog(backlog::Backlog),
    /// Send a signed sample message of each kind to a merchant and show the results
    ///
    /// Also requests the variants of a product. If an endpoint responds with 401 or 403, the result says
    /// whether it refused the signature or the credentials, as far as its response shows it. Exits with 1
    /// if an endpoint does not accept its sample.
    #[command(after_help = "\
Example:
  backhaul endpoint check acme")]
    Check(check::Check),
    /// List who sent samples to endpoints with check or trigger, newest first
    #[command(after_help = "\
Examples:
  backhaul endpoint samples
  backhaul endpoint samples acme --limit 5")]
    Samples(samples::Samples),
    /// Stop sending; messages wait
    #[command(after_help = "\
Example:
  backhaul endpoint pause acme rma")]
    Pause(Target),
    /// Send the waiting messages and all new ones
    #[command(after_help = "\
Example:
  backhaul endpoint resume acme rma")]
    Resume(Target),
}

#[derive(Args)]
pub(crate) struct Target {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// Message kind of the endpoint, or exchange-variants for the lookup of variants
    #[arg(value_parser = PossibleValuesParser::new(Interface::all().map(Interface::name)))]
    interface: String,
}

impl Target {
    fn path<'a>(&'a self, action: &[&'a str]) -> Vec<&'a str> {
        let endpoint = ["v1", "merchants", self.merchant.as_str(), "endpoints", &self.interface];
        [&endpoint, action].concat()
    }
}

#[derive(Args)]
pub(crate) struct Set {
    #[command(flatten)]
    target: Target,
    /// Full URL
    #[arg(long)]
    url: Option<String>,
    /// Path below the merchant's base URL [default: the standard path of the interface]
    #[arg(long, conflicts_with = "url")]
    path: Option<String>,
    /// Header of every request; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// Timeout of one attempt
    #[arg(long, value_name = "N")]
    timeout_ms: Option<u32>,
    /// Version of the messages [default: the version of the contract]
    #[arg(long, value_name = "N")]
    version: Option<u16>,
    /// Send the dead messages of the last N days again when the endpoint recovers from a failure
    #[arg(long, value_name = "N")]
    recovery_replay_days: Option<u16>,
    #[command(flatten)]
    authentication: authentication::AuthenticationArgs,
}

fn parse_header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("write NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Set {
    fn body(self) -> anyhow::Result<(Target, Value)> {
        let headers: Map<_, _> =
            self.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        let mut body = Map::new();
        body.extend(self.url.map(|url| ("url".to_owned(), url.into())));
        body.extend(self.path.map(|path| ("path".to_owned(), path.into())));
        body.extend(self.timeout_ms.map(|millis| ("timeout_ms".to_owned(), millis.into())));
        body.extend(self.version.map(|version| ("version".to_owned(), version.into())));
        let replay_days = self.recovery_replay_days;
        body.extend(replay_days.map(|days| ("recovery_replay_days".to_owned(), days.into())));
        body.insert("headers".to_owned(), headers.into());
        body.insert("authentication".to_owned(), json!(self.authentication.read()?));
        Ok((self.target, body.into()))
    }
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<ExitCode> {
    let OperatorCommand { operator, command } = arguments;
    let format = operator.format();
    match command {
        Command::Set(set) => {
            let (target, body) = set.body()?;
            let response = operator.connect().await?.put(&target.path(&[]), &body).await?;
            format.print(&response, describe)?;
        }
        Command::List { merchant } => {
            let mut path = vec!["v1", "merchants", merchant.as_str()];
            // The table shows whole URLs, which need the merchant's base URL.
            path.extend((format == Format::Json).then_some("endpoints"));
            let endpoints = operator.connect().await?.get(&path).await?;
            format.print(&endpoints, endpoints_table)?;
        }
        Command::Remove(target) => {
            let response = operator.connect().await?.delete(&target.path(&[])).await?;
            let Target { merchant, interface } = target;
            format.print(&response, |_| format!("removed {interface} of {merchant}\n"))?;
        }
        Command::RotateSecret { target, rotation } => {
            let path = target.path(&["rotate_secret"]);
            let rotated = operator.connect().await?.post(&path, &rotation.body()).await;
            let response = rotated.map_err(suggest_force)?;
            format.print(&response, describe)?;
        }
        Command::Backlog(backlog) => backlog::run(&operator, &backlog).await?,
        Command::Check(check) => return check::run(&operator, &check).await,
        Command::Samples(samples) => samples::run(&operator, &samples).await?,
        Command::Pause(target) => set_state(&operator, &target, "pause", "paused").await?,
        Command::Resume(target) => set_state(&operator, &target, "resume", "active").await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn set_state(
    operator: &OperatorArgs,
    target: &Target,
    action: &str,
    state: &str,
) -> anyhow::Result<()> {
    let response = operator.connect().await?.post(&target.path(&[action]), &json!({})).await?;
    let Target { merchant, interface } = target;
    operator.format().print(&response, |_| format!("{interface} of {merchant} is {state}\n"))
}
