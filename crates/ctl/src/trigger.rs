//! `backhaul trigger`: sends a realistic sample of an event to a merchant's endpoint.

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use domain::access::{MerchantId, Scope};
use domain::samples::{EVENTS, SampleEvent};
use serde_json::{Value, json};

use crate::api_client::{ApiClient, NO_QUERY};
use crate::connection::OperatorArgs;
use crate::delivery_services::{DeliveryServiceArgs, merge_lists};
use crate::endpoints::describe_check;
use crate::output::{Format, items, named_texts, text_at};
use crate::usage_error;

/// Send a sample of an event to a merchant's endpoint
///
/// The message is signed like any other. It is sent once, is not stored, and has identifiers that begin with
/// SAMPLE-. The client needs the scope manage. Exits with 1 if the endpoint does not accept the message, also
/// if the merchant has no endpoint for it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul trigger --list
  backhaul trigger rma.created --as merchant
  backhaul trigger rma.created --merchant acme")]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
    #[command(flatten)]
    services: DeliveryServiceArgs,
    /// Event, for example rma.created
    #[arg(required_unless_present = "list", value_parser = PossibleValuesParser::new(EVENTS.iter().map(|it| it.name)))]
    event: Option<String>,
    /// Merchant that receives the sample [default: the one that the client belongs to]
    #[arg(long)]
    merchant: Option<MerchantId>,
    /// List all events
    #[arg(long, conflicts_with_all = ["event", "merchant"])]
    list: bool,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { operator, services, event, merchant, list: _ } = arguments;
    let format = operator.format();
    let Some(event) = event else {
        return list(format).map(|()| ExitCode::SUCCESS);
    };
    let auth = operator.connect().await?;
    auth.require_scopes(&[Scope::Manage])?;
    auth.require_merchant(merchant.as_ref()).await?;
    let merchant = match merchant {
        Some(merchant) => merchant,
        None => own_merchant(&auth).await?,
    };
    let services = services.clients(&auth)?;
    let path = ["v1", "endpoints", merchant.as_str(), "check"];
    let query = [("event", event.as_str())];
    let results =
        merge_lists(&services, "results", async |service| service.trigger(&path, &query).await);
    let (results, outcome) = results.await?;
    if items(&results, "/results").is_empty() {
        outcome?;
        return Err(usage_error(format!("none of the services sends {event}")));
    }
    format.print(&results, describe_check)?;
    let is_accepted = |result: &Value| result.get("accepted") == Some(&json!(true));
    let all_accepted = items(&results, "/results").iter().all(is_accepted);
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The merchant that the client belongs to. A merchant's token lists only the clients of this merchant.
async fn own_merchant(auth: &ApiClient) -> anyhow::Result<MerchantId> {
    let name_one = || usage_error("the client belongs to no merchant: pass --merchant");
    if auth.is_operator() {
        return Err(name_one());
    }
    let clients = auth.list(&["v1", "clients"], "clients", NO_QUERY, 1).await?;
    text_at(&clients, "/clients/0/merchant").parse().map_err(|_none| name_one())
}

fn list(format: Format) -> anyhow::Result<()> {
    let entry = |event: &SampleEvent| json!({ "event": event.name, "kind": event.kind.name(), "about": event.about });
    let events: Vec<Value> = EVENTS.iter().map(entry).collect();
    let texts =
        || EVENTS.iter().map(|it| (it.name, format!("{} (kind {})", it.about, it.kind.name())));
    format.print(&json!({ "events": events }), |_| named_texts(&texts().collect::<Vec<_>>()))
}
