//! `backhaul deliveries report`.

use std::cell::Cell;

use clap::Args;
use domain::access::MerchantId;
use platform::Timestamp;
use serde::Serialize;
use serde_json::json;

use crate::api_client::ApiClient;
use crate::delivery_services::merge_lists;
use crate::output::{Column, Format, time, value};

const REPORT_COLUMNS: &[Column] = &[
    time("from", "/period_start_at"),
    value("merchant", "/merchant"),
    value("kind", "/kind"),
    value("outcome", "/outcome"),
    value("status", "/status"),
    value("attempts", "/attempts"),
];

#[derive(Args, Serialize)]
pub(super) struct Report {
    /// Only messages to this merchant
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// Start of the report [default: 24 hours ago]
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// End of the report [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Length of a row
    #[arg(long, default_value = "hour", value_parser = ["hour", "day"])]
    by: String,
}

impl Report {
    pub(super) async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        let is_truncated = Cell::new(false);
        let call = async |service: &ApiClient| {
            let report = service.search(&["v1", "reports", "deliveries"], self).await?;
            is_truncated.set(is_truncated.get() || report.get("truncated") == Some(&json!(true)));
            Ok(report)
        };
        let (mut report, outcome) = merge_lists(services, "counts", call).await?;
        if let Some(report) = report.as_object_mut() {
            report.insert("truncated".to_owned(), is_truncated.get().into());
        }
        format.print_table(&report, "/counts", REPORT_COLUMNS)?;
        if is_truncated.get() && format == Format::Text {
            eprintln!("the oldest rows are missing: choose a shorter time or --by day");
        }
        outcome
    }
}
