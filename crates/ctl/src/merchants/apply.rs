//! `backhaul merchant apply`: a merchant with its settings, clients, endpoints and warehouses from one file.
//!
//! The command compares the file with the merchant, validates the missing changes and makes them. It never
//! removes anything that the file does not name. If a change fails, the changes before it stay, and the
//! command shows them with their secrets before the error. Responses hide secrets, so a changed secret is
//! not noticed; `--update-secrets` sends the secrets of all endpoints again.

mod compare;
mod file;
mod plan;
mod validate;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use domain::printable::one_line;
use serde_json::{Map, Value, json};

use self::file::MerchantFile;
use self::plan::{Change, Plan};
use crate::api_client::ApiClient;
use crate::connection::OperatorArgs;
use crate::delivery_services::is_not_found;
use crate::output::{count, file_name, items, text_at};

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
    let (merchant, clients) = load(&auth, &file).await?;
    let merchant = merchant.as_ref();
    let clients = items(&clients, "/clients");
    let place = || file_name(&apply.file);
    let plan = Plan::new(&file, merchant, clients, apply.update_secrets).with_context(place)?;
    validate::check(&plan, merchant).with_context(place)?;
    let mut applied = Applied::default();
    let outcome = if apply.dry_run {
        applied.changes = plan.changes.iter().collect();
        Ok(())
    } else {
        applied.make(&auth, &file, &plan).await.with_context(place)
    };
    let Applied { changes, secrets } = applied;
    if outcome.is_err() && changes.is_empty() {
        return outcome;
    }
    // Changes before a failure stay, and their secrets are not shown again.
    let response = json!({
        "merchant": file.merchant, "dry_run": apply.dry_run, "changes": changes, "secrets": secrets,
        "not_made": plan.changes.len() - changes.len(),
    });
    outcome.and(operator.format().print(&response, describe))
}

/// The merchant with its warehouses by identifier, if it exists, and its clients.
async fn load(auth: &ApiClient, file: &MerchantFile) -> anyhow::Result<(Option<Value>, Value)> {
    let path = ["v1", "merchants", file.merchant.as_str()];
    match auth.get(&path).await {
        Ok(mut merchant) => {
            let warehouses = auth.get(&[&path[..], &["warehouses"]].concat()).await?;
            let warehouses = items(&warehouses, "/warehouses").iter();
            let by_identifier: Map<_, _> =
                warehouses.map(|it| (text_at(it, "/identifier"), it.clone())).collect();
            if let Value::Object(merchant) = &mut merchant {
                merchant.insert("warehouses".to_owned(), by_identifier.into());
            }
            let query = [("merchant", file.merchant.as_str())];
            let clients = auth.list(&["v1", "clients"], "clients", &query, usize::MAX).await?;
            Ok((Some(merchant), clients))
        }
        Err(error) if is_not_found(&error) => Ok((None, json!({}))),
        Err(error) => Err(error),
    }
}

/// The changes made so far, and the new secrets by client and endpoint.
#[derive(Default)]
struct Applied<'a> {
    changes: Vec<&'a Change>,
    secrets: Map<String, Value>,
}

impl<'a> Applied<'a> {
    async fn make(
        &mut self,
        auth: &ApiClient,
        file: &MerchantFile,
        plan: &'a Plan,
    ) -> anyhow::Result<()> {
        for change in &plan.changes {
            let secret =
                make_change(auth, file, change).await.with_context(|| one_line(&change.place()))?;
            self.changes.push(change);
            self.secrets.extend(secret);
        }
        Ok(())
    }
}

/// Makes a change and returns the name and value of the new secret, if there is one.
async fn make_change(
    auth: &ApiClient,
    file: &MerchantFile,
    change: &Change,
) -> anyhow::Result<Option<(String, Value)>> {
    let path = ["v1", "merchants", file.merchant.as_str()];
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
            let secret = created.get("client_secret").cloned();
            let secret =
                secret.with_context(|| format!("auth returned no secret for client {id}"))?;
            return Ok(Some((format!("client {id} ({name})"), secret)));
        }
        Change::SetEndpoint { interface, body, .. } => {
            let set = auth.put(&[&path[..], &["endpoints", interface]].concat(), body).await?;
            let secret = set.get("signing_secret").cloned();
            return Ok(secret.map(|secret| (format!("endpoint {interface}"), secret)));
        }
        Change::PauseEndpoint { interface, paused } => {
            let action = if *paused { "pause" } else { "resume" };
            let path = [&path[..], &["endpoints", interface, action]].concat();
            auth.post(&path, &json!({})).await?;
        }
        Change::SetWarehouse { identifier, body, .. } => {
            auth.put(&[&path[..], &["warehouses", identifier]].concat(), body).await?;
        }
    }
    Ok(None)
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
    let not_made = response.get("not_made").and_then(Value::as_u64).unwrap_or_default();
    text.push_str(&if response.get("dry_run") == Some(&json!(true)) {
        format!("\n{number} to make; nothing was changed.\n")
    } else if not_made > 0 {
        format!("\n{number} made, {not_made} not made.\n")
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
