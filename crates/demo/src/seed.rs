//! `demo seed`: the merchant `demo` with an API client and orders.
//!
//! A client secret is shown only once and a published refund never changes, so the client and the
//! orders are stored in a folder. Seeding again reuses them.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use ctl::api_client::{ApiClient, REQUEST_TIMEOUT};
use ctl::api_error::ApiError;
use ctl::oauth::{MERCHANT, OPERATOR, TokenClient, TokenError};
use ctl::output::print;
use ctl::service_urls::ORDERS;
use ctl::settings::Settings;
use domain::access::Scope;
use domain::order::Order;
use domain::order::sample::{Orders, message};
use platform::{Clock, http_client};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::poll::poll;

const MERCHANT_ID: &str = "demo";
/// All scopes of a shop, its engineers, its carrier and its warehouse.
const SCOPES: [Scope; 7] = [
    Scope::Orders,
    Scope::Returns,
    Scope::Read,
    Scope::Replay,
    Scope::Manage,
    Scope::Carrier,
    Scope::Warehouse,
];
const ORDER_COUNT: usize = 20;

/// Create the merchant "demo" with an API client and orders
///
/// Existing parts are reused. Needs the operator's client and the URLs of the auth
/// service and the order intake.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Folder for the client's credentials (env) and the orders (orders.json)
    folder: PathBuf,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    seed(&arguments.folder, Settings::load()?).await.map(drop)
}

/// Seeds the merchant and returns the settings with its credentials.
pub(crate) async fn seed(folder: &Path, settings: Settings) -> anyhow::Result<Settings> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let operator = TokenClient::from_settings(&settings, OPERATOR)?;
    let auth = ApiClient::log_in(&operator, REQUEST_TIMEOUT).await?;
    add_merchant(&auth).await?;
    let settings = add_client(&auth, &folder.join("env"), settings).await?;
    publish_orders(&folder.join("orders.json"), &settings).await?;
    Ok(settings)
}

async fn add_merchant(auth: &ApiClient) -> anyhow::Result<()> {
    let merchant = json!({ "identifier": MERCHANT_ID, "name": "Demo merchant" });
    match auth.post(&["v1", "merchants"], &merchant).await {
        Ok(_) => print(&format!("created merchant {MERCHANT_ID}\n"))?,
        Err(error) if is_conflict(&error) => print(&format!("merchant {MERCHANT_ID} exists\n"))?,
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_conflict(error: &anyhow::Error) -> bool {
    error.downcast_ref::<ApiError>().is_some_and(|error| error.status == StatusCode::CONFLICT)
}

/// Reuses the client in the file if its credentials are valid, or else creates one.
async fn add_client(
    auth: &ApiClient,
    file: &Path,
    mut settings: Settings,
) -> anyhow::Result<Settings> {
    #[derive(Deserialize)]
    struct Client {
        client_id: String,
        client_secret: String,
    }
    if file.exists() {
        settings = settings.with(Settings::read(file)?);
        if has_valid_client(&settings).await? {
            print("API client exists\n")?;
            return Ok(settings);
        }
    }
    let client = json!({
        "merchant": MERCHANT_ID, "name": "Demo shop", "scopes": SCOPES.map(Scope::as_str),
    });
    let created = auth.post(&["v1", "clients"], &client).await?;
    let created = Client::deserialize(created).context("the response is not a client")?;
    let values = [
        ("MERCHANT_ID", MERCHANT_ID.to_owned()),
        (MERCHANT.id.name, created.client_id),
        (MERCHANT.secret.name, created.client_secret),
    ];
    write_settings(file, &values).with_context(|| format!("cannot write {}", file.display()))?;
    print("created API client\n")?;
    let values: HashMap<_, _> =
        values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Ok(settings.with(values))
}

/// Whether the merchant's client gets a token with all scopes.
async fn has_valid_client(settings: &Settings) -> anyhow::Result<bool> {
    let tokens = TokenClient::from_settings(settings, MERCHANT)?;
    let scope = SCOPES.map(Scope::as_str).join(" ");
    match tokens.request(&http_client(REQUEST_TIMEOUT)?, Some(&scope)).await {
        Ok(_) => Ok(true),
        Err(TokenError::Rejected { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Writes a settings file that only its owner can read. The rename is atomic.
pub(crate) fn write_settings(file: &Path, values: &[(&str, String)]) -> std::io::Result<()> {
    let temporary = file.with_extension("new");
    let mut out =
        OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(&temporary)?;
    for (name, value) in values {
        writeln!(out, "{name}={value}")?;
    }
    fs::rename(&temporary, file)
}

/// Publishes the orders of the file, which is created if it does not exist. A new merchant reaches the
/// order intake with a delay, so the request is retried.
async fn publish_orders(file: &Path, settings: &Settings) -> anyhow::Result<()> {
    if !file.exists() {
        write_orders(file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let orders: Value = serde_json::from_slice(&text)?;
    let tokens = TokenClient::from_settings(settings, MERCHANT)?;
    let shop = ApiClient::log_in(&tokens, REQUEST_TIMEOUT).await?;
    let order_intake = shop.at_service(ORDERS, settings)?.with_header("Api-Version", "3");
    poll("the order intake stores the orders", REQUEST_TIMEOUT, async || {
        order_intake.post(&["returns_portal_orders"], &orders).await.map(Some)
    })
    .await?;
    Ok(print(&format!("published {ORDER_COUNT} orders\n"))?)
}

fn write_orders(file: &Path) -> std::io::Result<()> {
    let now = Clock::system().now();
    let seed = now.timestamp_micros().unsigned_abs();
    let orders: Vec<Order> = Orders::new(seed, now).take(ORDER_COUNT).collect();
    let temporary = file.with_extension("new");
    fs::write(&temporary, message(&orders).to_string())?;
    fs::rename(&temporary, file)
}
