//! `backhaul client`: the programs that may ask for tokens.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::access::{MerchantId, Scope};
use platform::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::operator::{Flags, Listing};
use crate::output::{once, or_dash, properties, table, time};

/// Add, list, rotate and revoke API clients
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a client; its secret is shown once
    #[command(after_help = "\
Examples:
  backhaul client add acme --scope orders --scope returns --name 'Acme shop'
  backhaul client add --scope warehouse --name 'Warehouse Reno'")]
    Add {
        /// The merchant it works for; without one it works for the platform
        merchant: Option<MerchantId>,
        /// What it is, for people
        #[arg(long, default_value = "API client")]
        name: String,
        /// What it may do; can be repeated
        #[arg(
            long = "scope",
            required = true,
            value_name = "SCOPE",
            value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::as_str))
        )]
        scopes: Vec<String>,
    },
    /// List clients, of one merchant or all
    List {
        /// Only this merchant's
        merchant: Option<MerchantId>,
    },
    /// Make a new secret; for a while the old one works too
    #[command(after_help = "\
Examples:
  backhaul client rotate bh_0193f2a1b0c47d5e8f9a
  backhaul client rotate bh_0193f2a1b0c47d5e8f9a --overlap 0s    (the old one leaked)")]
    Rotate {
        #[arg(value_name = "CLIENT_ID")]
        client: String,
        #[command(flatten)]
        overlap: Overlap,
    },
    /// Shut a client out for good, with every token it holds
    Revoke {
        #[arg(value_name = "CLIENT_ID")]
        client: String,
    },
}

/// How long an old secret lives on.
#[derive(Args)]
pub(crate) struct Overlap {
    /// How long the old secret works beside the new one, like 30min or 2days; the service's own
    /// setting unless given
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    overlap: Option<Duration>,
}

impl Overlap {
    pub(crate) fn body(&self) -> Map<String, Value> {
        let seconds = self.overlap.map(|overlap| overlap.as_secs().into());
        seconds.map(|seconds| ("overlap_seconds".to_owned(), seconds)).into_iter().collect()
    }
}

/// A client as the service shows it.
#[derive(Deserialize)]
struct Client {
    client_id: String,
    merchant: Option<String>,
    name: String,
    scope: String,
    created_at: Timestamp,
    revoked_at: Option<Timestamp>,
    client_secret: Option<String>,
}

#[derive(Deserialize)]
struct Clients {
    clients: Vec<Client>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { flags, command } = arguments;
    let format = flags.format();
    match command {
        Command::Add { merchant, name, scopes } => {
            let mut body = Map::from_iter([
                ("name".to_owned(), json!(name)),
                ("scopes".to_owned(), json!(scopes)),
            ]);
            body.extend(merchant.map(|merchant| ("merchant".to_owned(), json!(merchant))));
            format.show(flags.connect().await?.post(&["v1", "clients"], body).await?, describe)
        }
        Command::List { merchant } => {
            let listing = Listing {
                path: &["v1", "clients"],
                merchant: merchant.as_ref().map(MerchantId::as_str),
                items: "clients",
                cursor: "after",
                most: usize::MAX,
            };
            let answer = flags.connect().await?.list(listing).await?;
            format.show(answer, |found: &Clients| tabulate(&found.clients))
        }
        Command::Rotate { client, overlap } => {
            let path = ["v1", "clients", &client, "rotate"];
            format.show(flags.connect().await?.post(&path, overlap.body()).await?, describe)
        }
        Command::Revoke { client } => {
            let path = ["v1", "clients", &client, "revoke"];
            format.show(flags.connect().await?.post(&path, Map::new()).await?, describe)
        }
    }
}

fn tabulate(clients: &[Client]) -> String {
    let row = |client: &Client| {
        [
            client.client_id.clone(),
            or_dash(client.merchant.as_ref()),
            client.name.clone(),
            client.scope.clone(),
            time(&client.created_at),
            or_dash(client.revoked_at.as_ref().map(time)),
        ]
    };
    let headings = ["client id", "merchant", "name", "scope", "created", "revoked"];
    table(headings, clients.iter().map(row))
}

fn describe(client: &Client) -> String {
    let mut text = properties([
        ("client id", client.client_id.clone()),
        ("merchant", or_dash(client.merchant.as_ref())),
        ("name", client.name.clone()),
        ("scope", client.scope.clone()),
        ("created", time(&client.created_at)),
        ("revoked", or_dash(client.revoked_at.as_ref().map(time))),
    ]);
    if let Some(secret) = &client.client_secret {
        text.push_str(&once("client secret", secret));
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn clients_are_listed_and_a_new_secret_is_shown() {
        let clients = json!({ "clients": [
            { "client_id": "bh_1", "merchant": "acme", "name": "Shop", "scope": "orders returns",
              "created_at": "2026-11-15T03:48:13Z", "revoked_at": null, "client_secret": "s3cret" },
            { "client_id": "operator", "merchant": null, "name": "first operator",
              "scope": "operator", "created_at": "2026-11-15T03:48:13Z",
              "revoked_at": "2026-11-16T03:48:13Z" },
        ]});
        let Clients { clients } = serde_json::from_value(clients).unwrap();
        expect![[r#"
            CLIENT ID  MERCHANT  NAME            SCOPE           CREATED               REVOKED
            bh_1       acme      Shop            orders returns  2026-11-15 03:48:13Z  -
            operator   -         first operator  operator        2026-11-15 03:48:13Z  2026-11-16 03:48:13Z
        "#]].assert_eq(&tabulate(&clients));
        expect![[r#"
            client id  bh_1
            merchant   acme
            name       Shop
            scope      orders returns
            created    2026-11-15 03:48:13Z
            revoked    -

            client secret: s3cret
            Keep it now: it is not shown again.
        "#]]
        .assert_eq(&describe(&clients[0]));
    }
}
