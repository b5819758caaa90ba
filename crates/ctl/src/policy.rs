//! `backhaul policy`: the rules of a merchant for returns.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use domain::access::MerchantId;
use serde_json::{Map, Value, json};

use crate::api_client::{ApiClient, NO_QUERY};
use crate::connection::{OperatorArgs, OperatorCommand};
use crate::output::{Column, computed, count, file_name, items, join, table, text_at, time, value};
use crate::service_urls::RETURNS;
use crate::settings::{Settings, read_text};

/// Changed returns that are shown.
const MAX_SHOWN: usize = 20;

const RULE_COLUMNS: &[Column] =
    &[value("rule", "/id"), value("when", "/when"), value("then", "/then")];

const VERSION_COLUMNS: &[Column] = &[
    value("version", "/version").whole(),
    time("time", "/created_at"),
    value("actor", "/actor"),
    computed("rules", |version| join(items(version, "/rules").iter().map(|it| text_at(it, "/id")))),
];

const CHANGE_COLUMNS: &[Column] = &[
    value("rma", "/rma_identifier"),
    value("saved rules", "/current/in_words").whole(),
    value("draft", "/draft/in_words").whole(),
];

const UNIT_COLUMNS: &[Column] = &[
    value("line", "/line"),
    value("unit", "/unit"),
    value("saved rules", "/current").whole(),
    value("draft", "/draft").whole(),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the rules of a merchant
    #[command(after_help = "\
Examples:
  backhaul policy show acme
  backhaul policy show acme --json > policy.json")]
    Show {
        /// Identifier of the merchant
        merchant: MerchantId,
    },
    /// Show what a draft would decide, and change nothing
    ///
    /// Compares the draft with the saved rules, for one order or for the returns of the last 90 days.
    #[command(after_help = "\
Examples:
  backhaul policy preview acme policy.json
  backhaul policy preview acme policy.json --order 1001")]
    Preview(Preview),
    /// Replace the rules of a merchant
    #[command(after_help = "\
Example:
  backhaul policy apply acme policy.json

policy.json:
  { \"rules\": [{
      \"id\": \"in-store-only\",
      \"when\": { \"line_tags\": [\"bulky\"] },
      \"then\": { \"methods\": [\"express-returns\"] } }] }")]
    Apply {
        /// Identifier of the merchant
        merchant: MerchantId,
        /// JSON or YAML file with `rules`, `shoppers` or both, - for standard input
        file: PathBuf,
    },
    /// List who changed the rules of a merchant, newest first
    #[command(after_help = "\
Examples:
  backhaul policy versions acme
  backhaul policy versions acme --limit 1 --json")]
    Versions {
        /// Identifier of the merchant
        merchant: MerchantId,
        /// Maximum number of entries
        #[arg(long, value_name = "N", default_value = "20")]
        limit: NonZeroUsize,
    },
    /// Go back to the rules of an earlier version
    ///
    /// Saves them as a new version. The lists of shoppers stay as they are.
    #[command(after_help = "\
Example:
  backhaul policy revert acme 1794736800000")]
    Revert {
        /// Identifier of the merchant
        merchant: MerchantId,
        /// A version, as `backhaul policy versions` shows it
        version: i64,
    },
}

#[derive(Args)]
pub(crate) struct Preview {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// JSON or YAML file with the draft, - for standard input
    file: PathBuf,
    /// Show the units of this order instead of the returns of the last 90 days
    #[arg(long)]
    order: Option<String>,
}

pub(crate) async fn run(arguments: OperatorCommand<Command>) -> anyhow::Result<()> {
    let OperatorCommand { operator, command } = arguments;
    let format = operator.format();
    match command {
        Command::Show { merchant } => {
            let path = ["v1", "merchants", merchant.as_str()];
            let merchant = operator.connect().await?.get(&path).await?;
            let policy = merchant.get("policy").unwrap_or(&Value::Null);
            format.print(policy, |_| describe(&merchant))
        }
        Command::Apply { merchant, file } => {
            let body = json!({ "policy": read(&file)? });
            let path = ["v1", "merchants", merchant.as_str()];
            let merchant = operator.connect().await?.patch(&path, &body).await?;
            format.print(merchant.get("policy").unwrap_or(&Value::Null), |_| describe(&merchant))
        }
        Command::Preview(preview) => preview.run(&operator).await,
        Command::Versions { merchant, limit } => {
            let auth = operator.connect().await?;
            let path = versions_path(&merchant);
            let list = auth.list(&path, "versions", NO_QUERY, limit.get()).await?;
            format.print_table(&list, "/versions", VERSION_COLUMNS)
        }
        Command::Revert { merchant, version } => {
            let auth = operator.connect().await?;
            let body = json!({ "policy": { "rules": rules_of(&auth, &merchant, version).await? } });
            let merchant = auth.patch(&["v1", "merchants", merchant.as_str()], &body).await?;
            format.print(merchant.get("policy").unwrap_or(&Value::Null), |_| describe(&merchant))
        }
    }
}

fn versions_path(merchant: &MerchantId) -> [&str; 5] {
    ["v1", "merchants", merchant.as_str(), "policy", "versions"]
}

/// The rules of a version.
async fn rules_of(auth: &ApiClient, merchant: &MerchantId, version: i64) -> anyhow::Result<Value> {
    // A page begins with the version below `after`.
    let after = version.saturating_add(1).to_string();
    let query = [("after", after.as_str()), ("limit", "1")];
    let page = auth.search(&versions_path(merchant), &query[..]).await?;
    let found = items(&page, "/versions").first();
    let found = found.filter(|it| it.get("version") == Some(&Value::from(version)));
    let rules = found.and_then(|it| it.get("rules")).cloned();
    rules.with_context(|| format!("the policy of {merchant} has no version {version}"))
}

impl Preview {
    async fn run(self, operator: &OperatorArgs) -> anyhow::Result<()> {
        let Self { merchant, file, order } = self;
        let draft = read(&file)?;
        let auth = operator.connect().await?;
        let returns = auth.at_service(RETURNS, &Settings::load()?)?.for_merchant(&merchant);
        let format = operator.format();
        if let Some(order) = order {
            let body = json!({ "policy": draft, "order_identifier": order });
            let preview = returns.post(&PREVIEW, &body).await?;
            return format.print(&preview, describe_order);
        }
        format.print(&preview_of_history(&returns, &draft).await?, describe_history)
    }
}

const PREVIEW: [&str; 3] = ["v1", "policies", "preview"];

/// Adds up the responses about the returns of the last 90 days.
async fn preview_of_history(
    returns: &ApiClient,
    draft: &Map<String, Value>,
) -> anyhow::Result<Value> {
    let mut body = json!({ "policy": draft });
    let mut sum = Value::Null;
    loop {
        let page = returns.post(&PREVIEW, &body).await?;
        let next = page.get("next").cloned();
        add(&mut sum, &page);
        match (next, body.as_object_mut()) {
            (Some(next), Some(body)) => drop(body.insert("after".to_owned(), next)),
            _ => break,
        }
    }
    if let Some(sum) = sum.as_object_mut() {
        sum.remove("next");
    }
    Ok(sum)
}

/// Adds numbers to numbers and appends lists to lists.
fn add(sum: &mut Value, page: &Value) {
    match (sum, page) {
        (Value::Object(sum), Value::Object(page)) => {
            for (name, value) in page {
                add(sum.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(sum), Value::Array(page)) => sum.extend(page.iter().cloned()),
        (sum @ Value::Number(_), page) => {
            let total = sum.as_i64().unwrap_or_default() + page.as_i64().unwrap_or_default();
            *sum = total.into();
        }
        (sum, page) => *sum = page.clone(),
    }
}

/// Reads a policy. YAML includes JSON.
fn read(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = read_text(file)?;
    yaml_serde::from_str(&text)
        .with_context(|| format!("{} is no policy in JSON or YAML", file_name(file)))
}

fn describe(merchant: &Value) -> String {
    let rules = items(merchant, "/policy/rules");
    let mut text = match rules {
        [] => "no rules\n".to_owned(),
        rules => table(rules, RULE_COLUMNS),
    };
    for (name, list) in
        merchant.pointer("/policy/shoppers").and_then(Value::as_object).into_iter().flatten()
    {
        let shoppers = list.as_array().map_or(0, Vec::len);
        let shoppers = count(u64::try_from(shoppers).unwrap_or(u64::MAX), "shopper");
        text += &format!("list {name}: {shoppers}\n");
    }
    for warning in items(merchant, "/policy_warnings") {
        text += &format!(
            "warning: rule {} {}\n",
            text_at(warning, "/rule"),
            text_at(warning, "/detail")
        );
    }
    text
}

fn describe_order(preview: &Value) -> String {
    let units = items(preview, "/current/units").iter().zip(items(preview, "/draft/units"));
    let state = |unit: &Value| match unit.get("ineligible") {
        None => {
            let until = text_at(unit, "/returnable_until");
            format!("until {until}{}", warehouses(unit))
        }
        Some(ineligible) => refusal(ineligible),
    };
    let rows: Vec<_> = units
        .map(|(current, draft)| {
            json!({ "line": current.get("order_line_item_identifier"), "unit": current.get("unit"),
                    "current": state(current), "draft": state(draft) })
        })
        .collect();
    table(&rows, UNIT_COLUMNS)
}

fn refusal(ineligible: &Value) -> String {
    let detail = text_at(ineligible, "/detail");
    match ineligible.get("rule").and_then(Value::as_str) {
        Some(rule) => format!("{detail} (rule {rule})"),
        None => detail,
    }
}

fn describe_history(preview: &Value) -> String {
    let number = |path: &str| preview.pointer(path).and_then(Value::as_u64).unwrap_or_default();
    let mut text = format!(
        "{} of the last 90 days, of which the draft decides {} differently:\n",
        count(number("/returns"), "return"),
        number("/changed"),
    );
    for (name, field) in [("refused", "refused"), ("sent to review", "reviewed")] {
        let [now, draft] = ["current", "draft"].map(|part| number(&format!("/{part}/{field}")));
        text += &format!("  {name}: {draft} with the draft, {now} with the saved rules\n");
    }
    let costs = |part: &str| -> BTreeMap<String, i64> {
        let costs = preview.pointer(&format!("/{part}/return_shipping_cost_cents"));
        let costs = costs.and_then(Value::as_object).into_iter().flatten();
        costs
            .map(|(currency, cents)| (currency.clone(), cents.as_i64().unwrap_or_default()))
            .collect()
    };
    let current = costs("current");
    let mut draft = costs("draft");
    for currency in current.keys() {
        draft.entry(currency.clone()).or_default();
    }
    for (currency, cents) in draft {
        let now = current.get(&currency).copied().unwrap_or_default();
        text += &format!(
            "  return shipping in {currency} cents: {cents} with the draft, {now} with the saved rules\n"
        );
    }
    let in_words = |change: &Value| {
        let words = |part: &str| {
            let decided = change.get(part).unwrap_or(&Value::Null);
            json!({ "in_words": decision(decided) })
        };
        json!({ "rma_identifier": change.get("rma_identifier"), "current": words("current"), "draft": words("draft") })
    };
    let rows: Vec<_> = items(preview, "/changes").iter().take(MAX_SHOWN).map(in_words).collect();
    if rows.is_empty() { text } else { format!("{text}\n{}", table(&rows, CHANGE_COLUMNS)) }
}

/// The decision about a return in words.
fn decision(decided: &Value) -> String {
    if let Some(ineligible) = decided.get("ineligible") {
        return refusal(ineligible);
    }
    let cents = text_at(decided, "/return_shipping_cost_cents");
    let mut words = format!("shipping {cents} cents");
    if let Some(rule) = decided.get("cost_rule").and_then(Value::as_str) {
        words += &format!(" (rule {rule})");
    }
    if let Some(rule) = decided.get("review_rule").and_then(Value::as_str) {
        words += &format!("; review (rule {rule})");
    }
    if let Some(return_to) = decided.get("return_to") {
        words += &format!("; {}", warehouse(return_to));
    }
    words
}

/// The warehouse to which units go.
fn warehouse(return_to: &Value) -> String {
    format!("to {} (rule {})", text_at(return_to, "/warehouse"), text_at(return_to, "/rule"))
}

/// The warehouses to which a unit goes, by the choices that are possible.
fn warehouses(unit: &Value) -> String {
    let options = items(unit, "/choices").iter().flat_map(|choices| items(choices, "/options"));
    let possible = options.filter(|option| option.get("ineligible").is_none());
    let named = possible.filter_map(|option| Some(warehouse(option.get("return_to")?)));
    let named: BTreeSet<_> = named.collect();
    named.into_iter().map(|warehouse| format!(", {warehouse}")).collect()
}

#[cfg(test)]
mod tests;
