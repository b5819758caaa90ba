//! `backhaul audit`: who did what.

use std::num::NonZeroUsize;

use clap::Args;
use domain::access::MerchantId;
use platform::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::operator::{Flags, Listing};
use crate::output::{table, time};

/// List who changed what, newest first
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul audit
  backhaul audit acme --limit 500 --json")]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    /// Only what concerns this merchant
    merchant: Option<MerchantId>,
    /// How many entries at the most
    #[arg(long, value_name = "N", default_value = "50")]
    limit: NonZeroUsize,
}

#[derive(Deserialize)]
struct Records {
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    at: Timestamp,
    actor: String,
    action: String,
    subject: String,
    detail: Value,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { flags, merchant, limit } = arguments;
    let listing = Listing {
        path: &["v1", "audit"],
        merchant: merchant.as_ref().map(MerchantId::as_str),
        items: "records",
        cursor: "after",
        most: limit.get(),
    };
    let answer = flags.connect().await?.list(listing).await?;
    flags.format().show(answer, tabulate)
}

fn tabulate(found: &Records) -> String {
    let row = |record: &Record| {
        let Record { at, actor, action, subject, detail } = record;
        [time(at), actor.clone(), action.clone(), subject.clone(), detail.to_string()]
    };
    table(["time", "who", "what", "whose", "detail"], found.records.iter().map(row))
}
