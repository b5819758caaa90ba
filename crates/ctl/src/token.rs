//! `backhaul token`: prints an access token.

use clap::Args;
use platform::http_client;
use secrecy::ExposeSecret as _;

use crate::api_client::REQUEST_TIMEOUT;
use crate::oauth::{ClientArgs, Role};
use crate::output::print;
use crate::settings::Settings;

/// Print an access token
#[derive(Args)]
#[command(after_help = "\
Examples:
  curl -H \"Authorization: Bearer $(backhaul token)\" -H 'Api-Version: 3' …
  backhaul token --as operator --json
  backhaul token --client-id bh_0193f2a1b0c47d5e8f9a \\
      --client-secret-file - --scope orders < secret")]
pub(crate) struct Arguments {
    /// Take the credentials of this role, unless flags give them
    #[arg(long = "as", value_name = "ROLE", default_value = "merchant")]
    role: Role,
    /// Request only these scopes of the client, separated by spaces
    #[arg(long)]
    scope: Option<String>,
    /// Print the whole response as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    client: ClientArgs,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { role, scope, json, client } = arguments;
    let tokens = client.token_client(&Settings::load()?, role.credentials())?;
    let issued = tokens.request(&http_client(REQUEST_TIMEOUT)?, scope.as_deref()).await?;
    let text = if json {
        format!("{:#}\n", issued.response)
    } else {
        format!("{}\n", issued.access_token.expose_secret())
    };
    Ok(print(&text)?)
}
