//! `backhaul labels`: requests for the labels of parcels.

use std::num::NonZeroUsize;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::labels::LabelState;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::api_client::ApiClient;
use crate::connection::MerchantCommand;
use crate::output::{Column, computed, items, join, money, text_at, time, value};
use crate::service_urls::RETURNS;

const COLUMNS: &[Column] = &[
    value("id", "/label_request_id").whole(),
    value("merchant", "/merchant").whole(),
    value("rma", "/rma_identifier").whole(),
    value("parcel", "/parcel").leave_out(2),
    value("state", "/state"),
    value("tracking number", "/tracking_number").leave_out(3),
    computed("reason", reason).leave_out(1),
    time("requested", "/requested_at").leave_out(4),
];

const FIELDS: &[Column] = &[
    value("id", "/label_request_id"),
    value("merchant", "/merchant"),
    value("rma", "/rma_identifier"),
    value("parcel", "/parcel"),
    value("state", "/state"),
    computed("units", |request| {
        join(items(request, "/units").iter().map(|unit| {
            let line = text_at(unit, "/order_line_item_identifier");
            format!("{}/{line}:{}", text_at(unit, "/order_identifier"), text_at(unit, "/unit"))
        }))
    }),
    value("tracking number", "/tracking_number"),
    value("carrier", "/carrier"),
    value("service", "/service"),
    value("label", "/label_url"),
    value("document", "/document"),
    value("QR code", "/qr_code"),
    computed("cost", |request| match request.get("cost_cents").and_then(Value::as_i64) {
        Some(cents) => money(cents, &text_at(request, "/currency")),
        None => "-".to_owned(),
    }),
    value("refusal", "/refusal"),
    value("detail", "/detail"),
    time("requested", "/requested_at"),
    time("changed", "/updated_at"),
    time("expires", "/expires_at"),
    time("undeliverable since", "/undeliverable_since"),
    value("cancellation", "/cancellation"),
    value("message", "/message"),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List label requests, newest first
    #[command(after_help = "\
Examples:
  backhaul labels list --state refused --all-merchants
  backhaul labels list --rma RMA-1")]
    List(List),
    /// Show a label request with its label and its message
    #[command(after_help = "\
Example:
  backhaul labels show 01980a4c-7c1e-7000-8000-000000000001")]
    Show {
        /// ID of the label request
        id: Uuid,
    },
    /// Request a label again that was refused, canceled or undeliverable
    ///
    /// The new request has the present address of the order. An undeliverable one is canceled first.
    #[command(after_help = "\
Example:
  backhaul labels retry 01980a4c-7c1e-7000-8000-000000000001 --note 'Address corrected'")]
    Retry(Change),
    /// Cancel a label request, and its label at the provider
    #[command(after_help = "\
Example:
  backhaul labels cancel 01980a4c-7c1e-7000-8000-000000000001 --note 'Wrong carrier'")]
    Cancel(Change),
}

#[derive(Args)]
pub(crate) struct Change {
    /// ID of the label request
    id: Uuid,
    /// Reason for the record
    #[arg(long)]
    note: Option<String>,
}

impl Change {
    /// Sends the change. A repeated request, after a failure of the network, takes effect once.
    async fn send(self, client: &ApiClient, change: &str) -> anyhow::Result<Value> {
        let Self { id, note } = self;
        let body = Map::from_iter(note.map(|note| ("note".to_owned(), note.into())));
        let client = client.with_header("Idempotency-Key", &Uuid::new_v4().to_string());
        client.post(&["v1", "label_requests", &id.to_string(), change], &body.into()).await
    }
}

#[derive(Args, Serialize)]
pub(crate) struct List {
    /// Only the label requests of this return
    #[arg(long, value_name = "RMA")]
    #[serde(rename = "rma_identifier")]
    rma: Option<String>,
    /// Only label requests in this state
    #[arg(long, value_parser = PossibleValuesParser::new(LabelState::ALL.iter().map(|it| it.as_str())))]
    state: Option<String>,
    /// Search all merchants, as the operator
    #[arg(long)]
    #[serde(skip)]
    all_merchants: bool,
    /// Maximum number of label requests
    #[arg(long, value_name = "N", default_value = "50")]
    #[serde(skip)]
    limit: NonZeroUsize,
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let format = connection.format();
    let all_merchants = matches!(&command, Command::List(list) if list.all_merchants);
    let client = connection.connect_to(RETURNS, all_merchants).await?;
    match command {
        Command::List(list) => {
            let path = ["v1", "label_requests"];
            let found = client.list(&path, "label_requests", &list, list.limit.get()).await?;
            format.print_table(&found, "/label_requests", COLUMNS)
        }
        Command::Show { id } => {
            let path = ["v1", "label_requests", &id.to_string()];
            format.print_details(&client.get(&path).await?, FIELDS)
        }
        Command::Retry(change) => {
            format.print_details(&change.send(&client, "retry").await?, FIELDS)
        }
        Command::Cancel(change) => {
            format.print_details(&change.send(&client, "cancel").await?, FIELDS)
        }
    }
}

/// The reason why there is no label: a refusal, or a failure.
fn reason(request: &Value) -> String {
    match (text_at(request, "/refusal").as_str(), text_at(request, "/undeliverable_since").as_str())
    {
        ("-", "-") => "-".to_owned(),
        ("-", _) => "undeliverable".to_owned(),
        (refusal, _) => refusal.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::{details, table};

    #[test]
    fn a_request_says_why_it_has_no_label() {
        let request = |changes: Value| {
            let mut request = json!({
                "label_request_id": "01980a4c-7c1e-7000-8000-000000000001", "merchant": "acme",
                "rma_identifier": "RMA-1", "parcel": 1, "state": "requested",
                "requested_at": "2026-11-20T08:00:00Z", "updated_at": "2026-11-20T08:00:00Z",
                "units": [{ "order_identifier": "1001", "order_line_item_identifier": "L1", "unit": 2 }],
            });
            let members = request.as_object_mut().unwrap();
            members.extend(changes.as_object().unwrap().clone());
            request
        };
        let refused = json!({ "state": "refused", "refusal": "too_heavy", "detail": "over 30 kg" });
        let refused = request(refused);
        assert_eq!(reason(&refused), "too_heavy");
        let since = json!({ "undeliverable_since": "2026-11-20T09:00:00Z" });
        assert_eq!(reason(&request(since)), "undeliverable");
        assert_eq!(reason(&request(json!({}))), "-");
        let listed = table([&refused], COLUMNS);
        assert!(listed.contains("RMA-1") && listed.contains("refused"), "{listed}");
        let bought = json!({
            "state": "bought", "cost_cents": 499, "currency": "USD", "document": "pdf",
        });
        let shown = details(&request(bought), FIELDS);
        for part in ["1001/L1:2", "4.99 USD", "pdf"] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
    }
}
