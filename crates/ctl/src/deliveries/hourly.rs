//! `backhaul deliveries hourly`.

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use serde::Serialize;
use serde_json::{Value, json};

use crate::api_client::ApiClient;
use crate::delivery_services::merge_lists;
use crate::output::{Column, Format, time, value};

const COLUMNS: &[Column] = &[
    time("from", "/period_start_at"),
    value("attempts", "/attempts"),
    value("delivered", "/delivered"),
    value("failed", "/failed"),
    value("p50 ms", "/p50_ms"),
    value("p95 ms", "/p95_ms"),
];

#[derive(Args, Serialize)]
pub(super) struct Hourly {
    /// Message kind; one service delivers each kind
    #[arg(value_parser = PossibleValuesParser::new(MessageKind::ALL.map(MessageKind::name)))]
    kind: String,
    /// Only messages to this merchant
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// Number of hours, up to 720
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=720))]
    hours: u16,
}

impl Hourly {
    pub(super) fn merchant(&self) -> Option<&MerchantId> {
        self.merchant.as_ref()
    }

    /// Shows the hours with attempts. The services that do not deliver the kind have none.
    pub(super) async fn run(&self, services: &[ApiClient], format: Format) -> anyhow::Result<()> {
        let call =
            async |service: &ApiClient| service.search(&["v1", "reports", "hourly"], self).await;
        let (mut report, outcome) = merge_lists(services, "hours", call).await?;
        if let Some(Value::Array(hours)) = report.get_mut("hours") {
            hours.retain(|hour| hour.get("attempts") != Some(&json!(0)));
        }
        format.print_table(&report, "/hours", COLUMNS)?;
        outcome
    }
}
