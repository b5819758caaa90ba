//! `backhaul audit`: the audit log.

use std::num::NonZeroUsize;

use clap::Args;
use domain::access::MerchantId;

use crate::connection::OperatorArgs;
use crate::output::{Column, time, value};

const COLUMNS: &[Column] = &[
    time("time", "/created_at"),
    value("actor", "/actor"),
    value("action", "/action"),
    value("subject", "/subject"),
    value("detail", "/detail").wide(),
];

/// List changes to merchants, clients and endpoints, newest first
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul audit
  backhaul audit acme --limit 500 --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
    /// Only changes that concern this merchant
    merchant: Option<MerchantId>,
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value = "50")]
    limit: NonZeroUsize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { operator, merchant, limit } = arguments;
    let auth = operator.connect().await?;
    auth.require_merchant(merchant.as_ref()).await?;
    let query = [("merchant", merchant)];
    let response = auth.list(&["v1", "audit"], "records", &query, limit.get()).await?;
    operator.format().print_table(&response, "/records", COLUMNS)
}
