//! `backhaul token`: an access token, for trying things out.

use std::time::Duration;

use clap::{Args, ValueEnum};
use platform::http_client;
use secrecy::ExposeSecret as _;

use crate::output::print;
use crate::settings::Settings;
use crate::tokens::{ClientFlags, MERCHANT, OPERATOR, Place, TokenService};

const DEADLINE: Duration = Duration::from_secs(30);

/// Print an access token
#[derive(Args)]
#[command(after_help = "\
Examples:
  curl -H \"Authorization: Bearer $(backhaul token)\" -H 'Api-Version: 3' …
  backhaul token --as operator --json
  backhaul token --client-id bh_0193f2a1b0c47d5e8f9a --client-secret-file - --scope orders < secret")]
pub(crate) struct Arguments {
    /// Whose credentials to use, unless they are given
    #[arg(long = "as", value_name = "ROLE", default_value = "merchant")]
    role: Role,
    /// Ask for fewer scopes than the client has, separated by spaces
    #[arg(long)]
    scope: Option<String>,
    /// Print the whole answer
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    client: ClientFlags,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// $CLIENT_ID and $CLIENT_SECRET
    Merchant,
    /// $OPERATOR_CLIENT_ID and $OPERATOR_CLIENT_SECRET
    Operator,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { role, scope, json, place, client } = arguments;
    let settings = Settings::load()?;
    let role = match role {
        Role::Merchant => MERCHANT,
        Role::Operator => OPERATOR,
    };
    let url = place.url(&settings)?;
    let service = TokenService::new(url, client.credentials(&settings, role)?);
    let granted = service.request(&http_client(DEADLINE)?, scope.as_deref()).await?;
    let text = if json {
        format!("{:#}\n", granted.answer)
    } else {
        format!("{}\n", granted.access_token.expose_secret())
    };
    Ok(print(&text)?)
}
