//! `backhaul merchant apply`: a merchant with its settings, clients and endpoints from one file.
//!
//! The command compares the file with the merchant and makes the missing changes. It never removes
//! anything that the file does not name. Responses hide secrets, so a changed secret is not noticed;
//! `--update-secrets` sends the secrets of all endpoints again.

mod compare;
mod file;
mod plan;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use self::file::MerchantFile;
use self::plan::{Change, Plan};
use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::delivery_services::is_not_found;
use crate::output::{count, items, text_at};

#[derive(Args)]
pub(crate) struct Apply {
    /// YAML file, - for standard input
    file: PathBuf,
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Send the headers and credentials of all endpoints in the file again, because responses hide the
    /// current ones
    #[arg(long)]
    update_secrets: bool,
}

pub(super) async fn run(operator: &OperatorArgs, apply: &Apply) -> anyhow::Result<()> {
    let file = MerchantFile::read(&apply.file)?;
    let auth = operator.connect().await?;
    let merchant = match auth.get(&["v1", "merchants", file.merchant.as_str()]).await {
        Ok(merchant) => Some(merchant),
        Err(error) if is_not_found(&error) => None,
        Err(error) => return Err(error),
    };
    let clients = match &merchant {
        Some(_) => {
            let query = [("merchant", file.merchant.as_str())];
            auth.list(&["v1", "clients"], "clients", &query, usize::MAX).await?
        }
        None => json!({}),
    };
    let clients = items(&clients, "/clients");
    let plan = Plan::new(&file, merchant.as_ref(), clients, apply.update_secrets)?;
    let secrets = if apply.dry_run { Map::new() } else { make(&auth, &file, &plan).await? };
    let response = json!({
        "merchant": file.merchant, "dry_run": apply.dry_run, "changes": plan.changes, "secrets": secrets,
    });
    operator.format().print(&response, describe)
}

/// Makes the changes and returns the new secrets by client and endpoint.
async fn make(
    auth: &ApiClient,
    file: &MerchantFile,
    plan: &Plan,
) -> anyhow::Result<Map<String, Value>> {
    let path = ["v1", "merchants", file.merchant.as_str()];
    let mut secrets = Map::new();
    for change in &plan.changes {
        match change {
            Change::CreateMerchant { body, .. } => {
                auth.post(&path[..2], body).await?;
            }
            Change::UpdateMerchant { body, .. } => {
                auth.patch(&path, body).await?;
            }
            Change::CreateClient { name, body } => {
                let created = auth.post(&["v1", "clients"], body).await?;
                let id = text_at(&created, "/client_id");
                let secret = created.get("client_secret").cloned().unwrap_or_default();
                secrets.insert(format!("client {id} ({name})"), secret);
            }
            Change::SetEndpoint { interface, body, .. } => {
                let path = [&path[..], &["endpoints", interface]].concat();
                let set = auth.put(&path, body).await?;
                if let Some(secret) = set.get("signing_secret") {
                    secrets.insert(format!("endpoint {interface}"), secret.clone());
                }
            }
            Change::PauseEndpoint { interface, paused } => {
                let action = if *paused { "pause" } else { "resume" };
                auth.post(&[&path[..], &["endpoints", interface, action]].concat(), &json!({}))
                    .await?;
            }
        }
    }
    Ok(secrets)
}

/// The changes as lines, then the new secrets.
fn describe(response: &Value) -> String {
    let changes = items(response, "/changes");
    let merchant = text_at(response, "/merchant");
    if changes.is_empty() {
        return format!("{merchant} is up to date.\n");
    }
    let mut text: String = changes.iter().map(plan::describe).collect();
    let number = count(u64::try_from(changes.len()).unwrap_or(u64::MAX), "change");
    text.push_str(&if response.get("dry_run") == Some(&json!(true)) {
        format!("\n{number} to make; nothing was changed.\n")
    } else {
        format!("\n{number} made.\n")
    });
    let secrets = response.get("secrets").and_then(Value::as_object).into_iter().flatten();
    let lines: Vec<_> = secrets
        .map(|(name, it)| format!("{name}: {}\n", it.as_str().unwrap_or_default()))
        .collect();
    if !lines.is_empty() {
        text.push_str("\nNew secrets. Store them now: they are not shown again.\n");
        text.push_str(&lines.concat());
    }
    text
}
