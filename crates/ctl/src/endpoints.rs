//! `backhaul endpoint`: the URLs that receive a merchant's messages.

mod authentication;
mod check;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::access::MerchantId;
use domain::merchant::Interface;
use serde_json::{Map, Value, json};

use crate::clients::OverlapArgs;
use crate::connection::OperatorArgs;
use crate::output::{
    Column, Format, computed, details, items, join, new_secret, table, text_at, time_at, value,
};

const COLUMNS: &[Column] = &[
    value("interface", "/interface"),
    computed("state", state),
    value("url", "/resolved_url"),
    computed("authentication", authentication::kind),
    computed("timeout", timeout),
];

const FIELDS: &[Column] = &[
    value("interface", "/interface"),
    computed("state", state),
    value("url", "/resolved_url"),
    computed("authentication", authentication::describe),
    computed("timeout", timeout),
    computed("headers", headers),
    computed("signing secrets", signing_secrets),
];

/// Manage the endpoints that receive a merchant's messages
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set the URL, headers, timeout and authentication of an endpoint
    ///
    /// Replaces all of these. The signing secret and the paused state stay. For a new endpoint the
    /// command creates a signing secret and shows it once.
    #[command(after_help = "\
Examples:
  backhaul endpoint set acme rma --url https://api.acme.example/rmas
  backhaul endpoint set acme exchange-order --path /v2/exchanges --header 'X-Shop: 7' --timeout-ms 5000
  backhaul endpoint set acme rma --auth basic --username backhaul --password-file - < password
  backhaul endpoint set acme rma --auth oauth2 --token-url https://id.acme.example/token \\
      --client-id backhaul --client-secret-file secret.txt")]
    Set(Box<Set>),
    /// List the endpoints of a merchant
    List {
        /// Identifier of the merchant
        merchant: MerchantId,
    },
    /// Remove an endpoint; its messages can no longer be delivered
    Remove(Target),
    /// Create a new signing secret; messages carry both signatures for the overlap
    #[command(after_help = "\
Example:
  backhaul endpoint rotate-secret acme rma --overlap 2days")]
    RotateSecret {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        overlap: OverlapArgs,
    },
    /// Send a signed sample message of each kind to a merchant and show the results
    ///
    /// Exits with 1 if an endpoint does not accept its sample.
    #[command(after_help = "\
Example:
  backhaul endpoint check acme")]
    Check(check::Check),
    /// Stop sending; messages wait
    Pause(Target),
    /// Send the waiting messages and all new ones
    Resume(Target),
}

#[derive(Args)]
struct Target {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// Message kind of the endpoint, or variants for the lookup of exchange variants
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
struct Set {
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
        body.insert("headers".to_owned(), headers.into());
        body.insert("authentication".to_owned(), json!(self.authentication.read()?));
        Ok((self.target, body.into()))
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { operator, command } = arguments;
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
            format.print(&operator.connect().await?.get(&path).await?, endpoints_table)?;
        }
        Command::Remove(target) => {
            let response = operator.connect().await?.delete(&target.path(&[])).await?;
            let Target { merchant, interface } = target;
            format.print(&response, |_| format!("removed {interface} of {merchant}\n"))?;
        }
        Command::RotateSecret { target, overlap } => {
            let path = target.path(&["rotate_secret"]);
            let response = operator.connect().await?.post(&path, &overlap.body()).await?;
            format.print(&response, describe)?;
        }
        Command::Check(check) => return check::run(&operator, &check).await,
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

/// The endpoints of a merchant, one row each.
pub(crate) fn endpoints_table(merchant: &Value) -> String {
    let base_url = merchant.get("base_url").and_then(Value::as_str);
    let endpoints = merchant.get("endpoints").and_then(Value::as_object).into_iter().flatten();
    let rows: Vec<_> =
        endpoints.map(|(interface, endpoint)| row(interface, endpoint, base_url)).collect();
    table(&rows, COLUMNS)
}

/// An endpoint with its interface and URL.
fn row(interface: &str, endpoint: &Value, base_url: Option<&str>) -> Value {
    let mut row = endpoint.as_object().cloned().unwrap_or_default();
    row.insert("interface".to_owned(), interface.into());
    row.insert("resolved_url".to_owned(), url(interface, endpoint, base_url).into());
    row.into()
}

fn describe(response: &Value) -> String {
    let endpoint = response.get("endpoint").unwrap_or(&Value::Null);
    let row = row(&text_at(response, "/interface"), endpoint, None);
    details(&row, FIELDS) + &new_secret("signing secret", response, "/signing_secret")
}

fn headers(endpoint: &Value) -> String {
    let headers = endpoint.get("headers").and_then(Value::as_object).into_iter().flatten();
    join(headers.map(|(name, value)| format!("{name}: {}", value.as_str().unwrap_or_default())))
}

fn signing_secrets(endpoint: &Value) -> String {
    join(items(endpoint, "/signing_secrets").iter().map(|secret| {
        let created = format!("created {}", time_at(secret, "/created_at"));
        match time_at(secret, "/expires_at").as_str() {
            "-" => created,
            expires_at => format!("{created} and expires {expires_at}"),
        }
    }))
}

fn state(endpoint: &Value) -> String {
    let is_paused = endpoint.get("paused") == Some(&json!(true));
    if is_paused { "paused" } else { "active" }.to_owned()
}

/// The URL of an endpoint. Without a base URL only its path is known.
fn url(interface: &str, endpoint: &Value, base_url: Option<&str>) -> String {
    let member = |name| endpoint.get(name).and_then(Value::as_str);
    if let Some(url) = member("url") {
        return url.to_owned();
    }
    let standard_path = interface.parse().map_or("", Interface::default_path);
    let path = member("path").unwrap_or(standard_path);
    match base_url {
        Some(base_url) => format!("{}{path}", base_url.trim_end_matches('/')),
        None => format!("{path} below the base URL"),
    }
}

fn timeout(endpoint: &Value) -> String {
    match endpoint.get("timeout_ms").and_then(Value::as_u64) {
        Some(millis) => format!("{millis} ms"),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_endpoint_is_shown_with_its_new_secret() {
        let response = json!({
            "interface": "rma",
            "signing_secret": "whsec_c2VjcmV0",
            "endpoint": {
                "url": null, "path": "/v2/rmas", "headers": {"x-shop": "7"}, "timeout_ms": 5000,
                "paused": true,
                "authentication": {
                    "kind": "oauth2", "token_url": "https://id.acme.example/token",
                    "client_id": "backhaul", "client_secret": "********", "scope": "hooks",
                    "credentials_in": "basic"
                },
                "signing_secrets": [
                    {"id": "0193296c-0000-7000-8000-000000000002", "secret": "********",
                     "created_at": "2026-11-16T03:48:13Z", "expires_at": null},
                    {"id": "0193296c-0000-7000-8000-000000000001", "secret": "********",
                     "created_at": "2026-11-15T03:48:13Z", "expires_at": "2026-11-17T03:48:13Z"}
                ]
            }
        });
        expect![[r#"
            interface        rma
            state            paused
            url              /v2/rmas below the base URL
            authentication   oauth2, as backhaul at https://id.acme.example/token
            timeout          5000 ms
            headers          x-shop: 7
            signing secrets  created 2026-11-16 03:48:13Z, created 2026-11-15 03:48:13Z and expires 2026-11-17 03:48:13Z

            signing secret: whsec_c2VjcmV0
            Store it now: it is not shown again.
        "#]]
        .assert_eq(&describe(&response));
    }
}
