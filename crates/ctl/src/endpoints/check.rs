//! `backhaul endpoint check`: samples to a merchant, and what came of them.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use domain::access::MerchantId;
use serde::Deserialize;
use serde_json::Map;

use crate::deliverers::{Deliverers, together};
use crate::operator::Flags;
use crate::output::{or_dash, table, yes_or_no};

#[derive(Args)]
pub(super) struct Check {
    /// Its identifier
    merchant: MerchantId,
    #[command(flatten)]
    deliverers: Deliverers,
}

#[derive(Deserialize)]
struct Checks {
    results: Vec<Checked>,
}

#[derive(Deserialize)]
struct Checked {
    kind: String,
    endpoint: Option<String>,
    accepted: bool,
    outcome: String,
    status: Option<u16>,
    detail: String,
    latency_ms: u64,
}

pub(super) async fn run(flags: &Flags, check: &Check) -> anyhow::Result<ExitCode> {
    let services = check.deliverers.reach(&flags.connect().await?)?;
    let path = ["v1", "endpoints", check.merchant.as_str(), "check"];
    let results = together(&services, "results", async |it| it.post(&path, Map::new()).await);
    let (results, ended) = results.await?;
    let checks = Checks::deserialize(&results).context("an answer that is not ours")?;
    flags.format().show(results, tabulate)?;
    ended?;
    Ok(if checks.results.iter().any(Checked::is_wrong) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

impl Checked {
    /// A kind that the merchant has no endpoint for is not checked, and nothing is wrong with it.
    fn is_wrong(&self) -> bool {
        !self.accepted && self.outcome != "not_set"
    }
}

fn tabulate(checks: &Checks) -> String {
    let row = |checked: &Checked| {
        [
            checked.kind.clone(),
            or_dash(checked.endpoint.as_ref()),
            yes_or_no(checked.accepted),
            or_dash(checked.status),
            format!("{} ms", checked.latency_ms),
            checked.detail.clone(),
        ]
    };
    let headings = ["kind", "address", "accepted", "status", "took", "what happened"];
    table(headings, checks.results.iter().map(row))
}
