//! `backhaul endpoint`: where a merchant's messages go.

mod authentication;
mod check;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::access::MerchantId;
use domain::merchant::{Endpoint, Interface};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::clients::Overlap;
use crate::merchants::Merchant;
use crate::operator::Flags;
use crate::output::{Format, once, or_dash, properties, table, time};

/// Say where a merchant's messages go
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Set where messages of an interface go, and how they get in
    ///
    /// Replaces how the endpoint was, including its headers and authentication; its signing
    /// secret stays, and so does whether it is paused. The first time, a signing secret is made
    /// and shown.
    #[command(after_help = "\
Examples:
  backhaul endpoint set acme rma --url https://api.acme.example/rmas
  backhaul endpoint set acme exchange-order --path /v2/exchanges --header 'X-Shop: 7' --timeout-ms 5000
  backhaul endpoint set acme rma --auth basic --username backhaul --password-file - < password
  backhaul endpoint set acme rma --auth oauth2 --token-url https://id.acme.example/token \\
      --client-id backhaul --client-secret-file secret.txt")]
    Set(Box<Set>),
    /// List a merchant's endpoints
    List {
        /// Its identifier
        merchant: MerchantId,
    },
    /// Remove an endpoint; its messages have nowhere to go
    Remove(Which),
    /// Make a new signing secret; for a while both sign
    #[command(after_help = "\
Example:
  backhaul endpoint rotate-secret acme rma --overlap 2days")]
    RotateSecret {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        overlap: Overlap,
    },
    /// Send a signed sample of each kind to a merchant, and say what is wrong
    ///
    /// Ends with 1 when an endpoint does not accept its sample.
    #[command(after_help = "\
Example:
  backhaul endpoint check acme")]
    Check(check::Check),
    /// Let messages wait
    Pause(Which),
    /// Send what waited, and what comes
    Resume(Which),
}

#[derive(Args)]
struct Which {
    /// Its identifier
    merchant: MerchantId,
    /// What the messages are about, or the question for exchange variants
    #[arg(value_parser = PossibleValuesParser::new(Interface::all().map(Interface::name)))]
    interface: String,
}

impl Which {
    fn path<'a>(&'a self, verb: &[&'a str]) -> Vec<&'a str> {
        let endpoint = ["v1", "merchants", self.merchant.as_str(), "endpoints", &self.interface];
        [&endpoint, verb].concat()
    }
}

#[derive(Args)]
struct Set {
    #[command(flatten)]
    which: Which,
    /// The whole address
    #[arg(long)]
    url: Option<String>,
    /// A path below the merchant's base URL; the interface's usual one unless given
    #[arg(long, conflicts_with = "url")]
    path: Option<String>,
    /// Sent with every request; can be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// How long one attempt may take
    #[arg(long, value_name = "N")]
    timeout_ms: Option<u32>,
    #[command(flatten)]
    authentication: authentication::Flags,
}

fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("it is not NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

impl Set {
    fn body(self) -> anyhow::Result<(Which, Map<String, Value>)> {
        let headers: Map<_, _> =
            self.headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        let given = [
            ("url", self.url.map(Value::from)),
            ("path", self.path.map(Value::from)),
            ("headers", Some(headers.into())),
            ("timeout_ms", self.timeout_ms.map(Value::from)),
            ("authentication", Some(json!(self.authentication.read()?))),
        ];
        let said = given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Ok((self.which, said.collect()))
    }
}

/// An endpoint as the service shows it.
#[derive(Deserialize)]
struct Shown {
    interface: String,
    endpoint: Endpoint<String>,
    signing_secret: Option<String>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { flags, command } = arguments;
    let format = flags.format();
    match command {
        Command::Set(set) => {
            let (which, body) = set.body()?;
            format.show(flags.connect().await?.put(&which.path(&[]), body).await?, describe)?;
        }
        Command::List { merchant } => {
            let mut path = vec!["v1", "merchants", merchant.as_str()];
            // People are shown addresses, which may depend on the merchant's base URL.
            path.extend((format == Format::Json).then_some("endpoints"));
            format.show(flags.connect().await?.get(&path).await?, tabulate)?;
        }
        Command::Remove(which) => {
            let answer = flags.connect().await?.delete(&which.path(&[])).await?;
            let Which { merchant, interface } = which;
            format.show(answer, |_: &Value| format!("removed {interface} of {merchant}\n"))?;
        }
        Command::RotateSecret { which, overlap } => {
            let path = which.path(&["rotate_secret"]);
            format.show(flags.connect().await?.post(&path, overlap.body()).await?, describe)?;
        }
        Command::Check(check) => return check::run(&flags, &check).await,
        Command::Pause(which) => {
            let answer = flags.connect().await?.post(&which.path(&["pause"]), Map::new()).await?;
            let Which { merchant, interface } = which;
            format.show(answer, |_: &Value| format!("{interface} of {merchant} is paused\n"))?;
        }
        Command::Resume(which) => {
            let answer = flags.connect().await?.post(&which.path(&["resume"]), Map::new()).await?;
            let Which { merchant, interface } = which;
            format.show(answer, |_: &Value| format!("{interface} of {merchant} is active\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A merchant's endpoints, a line each.
pub(crate) fn tabulate(merchant: &Merchant) -> String {
    let base_url = merchant.settings.base_url.as_deref();
    let row = |(interface, endpoint): (&String, &Endpoint<String>)| {
        [
            interface.clone(),
            state(endpoint).to_owned(),
            address(interface, endpoint, base_url),
            authentication::name(&endpoint.authentication).to_owned(),
            timeout(endpoint),
        ]
    };
    let headings = ["interface", "state", "address", "authentication", "time-out"];
    table(headings, merchant.endpoints.iter().map(row))
}

fn describe(shown: &Shown) -> String {
    let Shown { interface, endpoint, signing_secret } = shown;
    let mut rows = vec![
        ("interface", interface.clone()),
        ("state", state(endpoint).to_owned()),
        ("address", address(interface, endpoint, None)),
        ("authentication", authentication::describe(&endpoint.authentication)),
        ("time-out", timeout(endpoint)),
    ];
    for (name, value) in &endpoint.headers {
        rows.push(("header", format!("{name}: {value}")));
    }
    for secret in &endpoint.signing_secrets {
        let until = secret.expires_at.as_ref().map(|at| format!(", signs until {}", time(at)));
        let since = time(&secret.created_at);
        rows.push(("signed since", format!("{since}{}", until.unwrap_or_default())));
    }
    let mut text = properties(rows);
    if let Some(secret) = signing_secret {
        text.push_str(&once("signing secret", secret));
    }
    text
}

fn state(endpoint: &Endpoint<String>) -> &'static str {
    if endpoint.paused { "paused" } else { "active" }
}

/// Where messages go, as far as that is known.
fn address(interface: &str, endpoint: &Endpoint<String>, base_url: Option<&str>) -> String {
    if let Some(url) = &endpoint.url {
        return url.clone();
    }
    let usual = interface.parse().map_or("", Interface::default_path);
    let path = endpoint.path.as_deref().unwrap_or(usual);
    match base_url {
        Some(base_url) => format!("{}{path}", base_url.trim_end_matches('/')),
        None => format!("{path} below the base URL"),
    }
}

fn timeout(endpoint: &Endpoint<String>) -> String {
    or_dash(endpoint.timeout_ms.map(|millis| format!("{millis} ms")))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn an_endpoint_is_described_with_its_new_secret() {
        let shown = json!({
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
            interface       rma
            state           paused
            address         /v2/rmas below the base URL
            authentication  oauth2, as backhaul at https://id.acme.example/token
            time-out        5000 ms
            header          x-shop: 7
            signed since    2026-11-16 03:48:13Z
            signed since    2026-11-15 03:48:13Z, signs until 2026-11-17 03:48:13Z

            signing secret: whsec_c2VjcmV0
            Keep it now: it is not shown again.
        "#]]
        .assert_eq(&describe(&serde_json::from_value(shown).unwrap()));
    }
}
