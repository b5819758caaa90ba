//! `backhaul audit`: the audit log.

use std::num::NonZeroUsize;

use clap::Args;
use domain::access::MerchantId;
use platform::Timestamp;
use serde::Serialize;

use crate::connection::OperatorArgs;
use crate::output::{Column, time, value};
use crate::time_input::{check_period, parse_time};

const COLUMNS: &[Column] = &[
    time("time", "/created_at"),
    value("actor", "/actor"),
    value("action", "/action"),
    value("subject", "/subject"),
    value("detail", "/detail").wide(),
];

/// List changes to merchants, endpoints, clients and people, and sign-ins, newest first
///
/// `backhaul replays list` lists replays, `backhaul endpoint samples` the samples that were sent to endpoints.
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul audit
  backhaul audit acme --limit 500 --json
  backhaul audit --actor ada@example.com --from yesterday
  backhaul audit --action endpoint.set --from 2026-11-01 --to 2026-11-08")]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value = "50")]
    limit: NonZeroUsize,
}

#[derive(Args, Serialize)]
struct Filter {
    /// Only changes that concern this merchant
    merchant: Option<MerchantId>,
    /// Only changes by this client ID or e-mail address
    #[arg(long)]
    actor: Option<String>,
    /// Only changes of this type, for example endpoint.set
    #[arg(long)]
    action: Option<String>,
    /// Only changes at this time or later
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// Only changes before this time
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Timestamp>,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { operator, filter, limit } = arguments;
    check_period(("--from", filter.from), ("--to", filter.to))?;
    let auth = operator.connect().await?;
    auth.require_merchant(filter.merchant.as_ref()).await?;
    let response = auth.list(&["v1", "audit"], "records", &filter, limit.get()).await?;
    operator.format().print_table(&response, "/records", COLUMNS)
}
