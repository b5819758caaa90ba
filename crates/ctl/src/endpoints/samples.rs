//! `backhaul endpoint samples`: who sent samples to endpoints.

use clap::{Args, value_parser};
use domain::access::MerchantId;
use serde::Serialize;

use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, list_newest};
use crate::output::{Column, computed, items, join, text_at, time, value};

const COLUMNS: &[Column] = &[
    time("time", "/requested_at"),
    value("merchant", "/merchant"),
    value("by", "/requested_by"),
    value("event", "/event"),
    computed("kinds", |it| join(items(it, "/kinds").iter().map(|kind| text_at(kind, "")))),
];

#[derive(Args)]
pub(crate) struct Samples {
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of requests, up to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u16).range(1..=200))]
    limit: u16,
    #[command(flatten)]
    services: DeliveryServiceArgs,
}

#[derive(Args, Serialize)]
struct Filter {
    /// Only samples for this merchant
    merchant: Option<MerchantId>,
}

pub(super) async fn run(operator: &OperatorArgs, samples: &Samples) -> anyhow::Result<()> {
    let auth = operator.connect().await?;
    auth.require_merchant(samples.filter.merchant.as_ref()).await?;
    let services = samples.services.clients(&auth)?;
    let limit = samples.limit.into();
    let (page, outcome) = list_newest(&services, "sample_requests", &samples.filter, limit).await?;
    operator.format().print_table(&page, "/sample_requests", COLUMNS)?;
    outcome
}
