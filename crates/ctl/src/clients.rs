//! `backhaul client`: API clients.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::access::{MerchantId, Scope};
use serde_json::{Value, json};

use crate::connection::OperatorCommand;
use crate::output::{Column, computed, details, id, new_secret, time, time_at, value};

const COLUMNS: &[Column] = &[
    id("client id", "/client_id"),
    value("merchant", "/merchant"),
    value("name", "/name"),
    value("scope", "/scope"),
    computed("state", |client| {
        let is_revoked = client.get("revoked_at").is_some_and(Value::is_string);
        if is_revoked { "revoked" } else { "active" }.to_owned()
    }),
    time("created", "/created_at").wide(),
    time("last used", "/last_used_at").leave_out(1),
    time("revoked", "/revoked_at").wide(),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Add a client and show its secret once
    #[command(after_help = "\
Examples:
  backhaul client add acme --scope orders --scope returns --name 'Acme shop'
  backhaul client add --scope warehouse --name 'Warehouse Reno'")]
    Add {
        /// Merchant that the client belongs to; without it the client belongs to the platform
        merchant: Option<MerchantId>,
        /// Display name
        #[arg(long, default_value = "API client")]
        name: String,
        /// Scope of the client's tokens; can be repeated
        #[arg(
            long = "scope",
            required = true,
            value_name = "SCOPE",
            value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::as_str))
        )]
        scopes: Vec<String>,
    },
    /// List the clients of one merchant, or of all
    #[command(after_help = "\
Examples:
  backhaul client list
  backhaul client list acme --wide")]
    List {
        /// Only clients of this merchant
        merchant: Option<MerchantId>,
    },
    /// Create a new secret; the old one stays valid for the overlap
    ///
    /// Fails if a secret that got a token in the last 26 hours would end at once. With
    /// the scope manage, a merchant rotates the secrets of its own clients.
    #[command(after_help = "\
Examples:
  backhaul client rotate bh_0193f2a1b0c47d5e8f9a
  backhaul client rotate bh_0193f2a1b0c47d5e8f9a --as merchant
  backhaul client rotate bh_0193f2a1b0c47d5e8f9a --overlap 0s --force")]
    Rotate {
        /// ID of the client, from `backhaul client list`
        #[arg(value_name = "CLIENT_ID")]
        client: String,
        #[command(flatten)]
        rotation: RotationArgs,
    },
    /// Revoke a client and all its tokens, permanently
    #[command(after_help = "\
Example:
  backhaul client revoke bh_0193f2a1b0c47d5e8f9a")]
    Revoke {
        /// ID of the client, from `backhaul client list`
        #[arg(value_name = "CLIENT_ID")]
        client: String,
    },
}

/// The rotation of a secret.
#[derive(Args)]
pub(crate) struct RotationArgs {
    /// How long the old secret stays valid, for example 30min or 2days
    /// [default: set by the service]
    #[arg(long, value_name = "TIME", verbatim_doc_comment, value_parser = parse_overlap)]
    overlap: Option<Duration>,
    /// End old secrets even if they are still in use
    #[arg(long)]
    force: bool,
}

fn parse_overlap(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_bad| "write a length of time such as 30min or 2days".to_owned())
}

impl RotationArgs {
    pub(crate) fn body(&self) -> Value {
        let mut body = json!({ "force": self.force });
        if let (Some(overlap), Some(body)) = (self.overlap, body.as_object_mut()) {
            body.insert("overlap_seconds".to_owned(), overlap.as_secs().into());
        }
        body
    }
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<()> {
    let OperatorCommand { operator, command } = arguments;
    let format = operator.format();
    let auth = operator.connect().await?;
    let response = match command {
        Command::Add { merchant, name, scopes } => {
            let mut client = json!({ "name": name, "scopes": scopes });
            if let (Some(merchant), Some(client)) = (merchant, client.as_object_mut()) {
                client.insert("merchant".to_owned(), json!(merchant));
            }
            auth.post(&["v1", "clients"], &client).await?
        }
        Command::List { merchant } => {
            auth.require_merchant(merchant.as_ref()).await?;
            let query = [("merchant", merchant)];
            let clients = auth.list(&["v1", "clients"], "clients", &query, usize::MAX).await?;
            return format.print_table(&clients, "/clients", COLUMNS);
        }
        Command::Rotate { client, rotation } => {
            let path = ["v1", "clients", &client, "rotate"];
            auth.post(&path, &rotation.body()).await.map_err(suggest_force)?
        }
        Command::Revoke { client } => {
            auth.post(&["v1", "clients", &client, "revoke"], &json!({})).await?
        }
    };
    format.print(&response, describe)
}

/// Names the flag for a secret that is in use.
pub(crate) fn suggest_force(error: anyhow::Error) -> anyhow::Error {
    if error.to_string().contains("use force") {
        error.context("the secret was not rotated; --force does it anyway")
    } else {
        error
    }
}

fn describe(client: &Value) -> String {
    let mut text = details(client, COLUMNS);
    text.push_str(&new_secret("client secret", client, "/client_secret"));
    if client.get("previous_secret_expires_at").is_some_and(Value::is_string) {
        let until = time_at(client, "/previous_secret_expires_at");
        text.push_str(&format!("The previous secret works until {until}.\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::output::{items, table};

    #[test]
    fn clients_are_listed_and_a_new_secret_is_shown() {
        let clients = json!({ "clients": [
            { "client_id": "bh_1", "merchant": "acme", "name": "Shop", "scope": "orders returns",
              "created_at": "2026-11-15T03:48:13Z", "last_used_at": "2026-11-16T08:00:00Z",
              "revoked_at": null, "client_secret": "s3cret" },
            { "client_id": "operator", "merchant": null, "name": "first operator",
              "scope": "operator", "created_at": "2026-11-15T03:48:13Z",
              "revoked_at": "2026-11-16T03:48:13Z" },
        ]});
        let clients = items(&clients, "/clients");
        expect![[r#"
            CLIENT ID  MERCHANT  NAME            SCOPE           STATE    LAST USED
            bh_1       acme      Shop            orders returns  active   2026-11-16 08:00
            operator   -         first operator  operator        revoked  -
        "#]]
        .assert_eq(&table(clients, COLUMNS));
        expect![[r#"
            client id  bh_1
            merchant   acme
            name       Shop
            scope      orders returns
            state      active
            created    2026-11-15 03:48:13Z
            last used  2026-11-16 08:00:00Z
            revoked    -

            client secret: s3cret
            Store it now: it is not shown again.
        "#]]
        .assert_eq(&describe(&clients[0]));
        let rotated = json!({ "previous_secret_expires_at": "2026-11-17T08:00:00Z" });
        let last = "The previous secret works until 2026-11-17 08:00:00Z.\n";
        assert!(describe(&rotated).ends_with(last));
    }
}
