//! `backhaul demo`: a merchant to try things out with.
//!
//! A client's secret is shown once, and a refund, once published, never changes: so client and
//! orders are kept in a folder, and whoever sets the merchant up again finds it as it was.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use domain::access::Scope;
use platform::http_client;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::operator::{DEADLINE, Operator};
use crate::orders;
use crate::output::print;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::tokens::{Credentials, MERCHANT, NoToken, OPERATOR, TokenService, known_url};

const NAME: &str = "demo";
/// What a shop, its carrier and its warehouse may do; all but running the service.
const SCOPES: [Scope; 4] = [Scope::Orders, Scope::Returns, Scope::Carrier, Scope::Warehouse];

/// Set up the merchant "demo" with an API client and a few orders
///
/// What is there already stays. Needs the operator's client and the addresses of the token service
/// and of the order intake.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Keeps the client, in the file env, and the orders
    folder: PathBuf,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    set_up(&arguments.folder, Settings::load()?).await.map(drop)
}

/// Sets the merchant up, and returns the settings of whoever acts for it.
pub(crate) async fn set_up(folder: &Path, settings: Settings) -> anyhow::Result<Settings> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let auth = known_url(&settings)?;
    let credentials = Credentials::known(&settings, OPERATOR)?;
    let operator = Operator::log_in(auth, credentials, DEADLINE).await?;
    add_merchant(&operator).await?;
    let settings = add_client(&operator, &folder.join("env"), settings).await?;
    let published = orders::publish_samples(&folder.join("orders.json"), &settings).await?;
    print(&format!("it has published {published} orders\n"))?;
    Ok(settings)
}

async fn add_merchant(operator: &Operator) -> anyhow::Result<()> {
    let merchant = body([("identifier", json!(NAME)), ("name", json!("Demo merchant"))]);
    match operator.post(&["v1", "merchants"], merchant).await {
        Ok(_) => print(&format!("created the merchant {NAME}\n"))?,
        Err(error) if is_there(&error) => print(&format!("the merchant {NAME} is there\n"))?,
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_there(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.status == StatusCode::CONFLICT)
}

/// The client that the file holds, if it still works, or a new one.
async fn add_client(
    operator: &Operator,
    file: &Path,
    settings: Settings,
) -> anyhow::Result<Settings> {
    #[derive(Deserialize)]
    struct Client {
        client_id: String,
        client_secret: String,
    }
    let mut settings = settings;
    if file.exists() {
        settings = settings.with(Settings::read(file)?);
        if works(&settings).await? {
            print("its API client is there\n")?;
            return Ok(settings);
        }
    }
    let wanted = body([
        ("merchant", json!(NAME)),
        ("name", json!("Demo shop")),
        ("scopes", json!(SCOPES.map(Scope::as_str))),
    ]);
    let made = operator.post(&["v1", "clients"], wanted).await?;
    let made: Client = serde_json::from_value(made).context("an answer that is not ours")?;
    let values = [
        ("MERCHANT_ID", NAME.to_owned()),
        (MERCHANT.id.name, made.client_id),
        (MERCHANT.secret.name, made.client_secret),
    ];
    keep(file, &values).with_context(|| format!("cannot write {}", file.display()))?;
    print("created an API client for it\n")?;
    let values: HashMap<_, _> =
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(settings.with(values))
}

/// Whether the merchant's client gets a token for all that it has to do.
async fn works(settings: &Settings) -> anyhow::Result<bool> {
    let url = known_url(settings)?;
    let credentials = Credentials::known(settings, MERCHANT)?;
    let scope = SCOPES.map(Scope::as_str).join(" ");
    let service = TokenService::new(url, credentials);
    match service.request(&http_client(DEADLINE)?, Some(&scope)).await {
        Ok(_) => Ok(true),
        Err(NoToken::Refused { .. }) => Ok(false),
        Err(unavailable) => Err(unavailable.into()),
    }
}

/// Writes settings where only their owner reads them; all of them, or none.
fn keep(file: &Path, values: &[(&str, String)]) -> std::io::Result<()> {
    let draft = file.with_extension("new");
    let mut out =
        OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&draft)?;
    for (name, value) in values {
        writeln!(out, "{name}={value}")?;
    }
    fs::rename(&draft, file)
}

fn body<const N: usize>(members: [(&str, Value); N]) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
