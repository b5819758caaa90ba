//! `backhaul returns`: returns of shoppers.

mod arrivals;
mod create;
mod list;
mod show;
mod simulate;

use chrono::NaiveDate;
use clap::{Args, Subcommand};
use domain::returns::UnitId;
use serde::Serialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::api_client::{ApiClient, NO_QUERY};
use crate::connection::MerchantCommand;
use crate::service_urls::RETURNS;
use crate::usage_error;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List returns, newest first
    #[command(after_help = "\
Examples:
  backhaul returns list --work-list to_refund --oldest-first
  backhaul returns list --reason DAMAGED --from 30d
  backhaul returns list --message-state dead --all-merchants
  backhaul returns list --email ada@shopper.example --all-merchants
  backhaul returns list --updated-from 2020-01-01 --limit 10000 --json")]
    List(Box<list::List>),
    /// Show a return with its units and timeline
    #[command(after_help = "\
Example:
  backhaul returns show RMA-1")]
    Show {
        /// Identifier of the return
        rma: String,
    },
    /// Create a return
    #[command(after_help = "\
Examples:
  backhaul returns create --order 1001 --unit LINE-1 --reason CHANGED_MIND
  backhaul returns create --order 1001 --unit LINE-1:2 \\
      --reason TOO_SMALL --exchange-for BOOT-M
  backhaul returns create --order 1001 --unit LINE-1 --unit LINE-2 \\
      --reason OTHER --gift-card
  backhaul returns create --order 1001 --unit LINE-1 --reason OTHER \\
      --override --note 'The parcel came too late'
  backhaul returns create --body return.json")]
    Create(Box<create::Create>),
    /// Cancel a return or some of its units, which can then be returned again
    #[command(after_help = "\
Examples:
  backhaul returns cancel RMA-1
  backhaul returns cancel RMA-1 --unit 1001/LINE-1:2")]
    Cancel {
        /// Identifier of the return
        rma: String,
        /// A unit as ORDER/LINE:NUMBER; can be repeated [default: all units]
        #[arg(long = "unit", value_name = "UNIT", value_parser = parse_unit)]
        units: Vec<UnitId>,
        /// Reason for the record
        #[arg(long)]
        reason: Option<String>,
    },
    /// Approve a return that waits for review, which starts it
    #[command(after_help = "\
Examples:
  backhaul returns list --status REQUESTED
  backhaul returns approve RMA-1")]
    Approve(Decision),
    /// Decline a return that waits for review, so that its units can be returned again
    #[command(after_help = "\
Example:
  backhaul returns decline RMA-1 --note 'Worn items cannot be returned.'")]
    Decline(Decision),
    /// Waive exchanged units that have not come back
    ///
    /// The merchant does without the units and does not charge for them.
    #[command(after_help = "\
Examples:
  backhaul returns waive RMA-1 --note 'The carrier lost the parcel'
  backhaul returns waive RMA-1 --unit 1001/LINE-1:2 --note Goodwill")]
    Waive {
        /// Identifier of the return
        rma: String,
        /// A unit as ORDER/LINE:NUMBER; can be repeated [default: all
        /// units that have not come back]
        #[arg(long = "unit", value_name = "UNIT", value_parser = parse_unit, verbatim_doc_comment)]
        units: Vec<UnitId>,
        /// Reason for the record
        #[arg(long)]
        note: String,
    },
    /// Report exchanged units by month: open, met, due and waived
    #[command(after_help = "\
Example:
  backhaul returns guarantees --from 2026-01 --to 2026-06")]
    Guarantees(Guarantees),
    /// Simulate a return with label, scan, receipt and refund, in a sandbox environment
    ///
    /// Creates a return of all returnable units of an order, by default of the newest order that has any,
    /// then reports the events of carrier, warehouse and shop. The merchant's endpoint receives the messages
    /// of a refunded return, without an exchange or a cancellation. With --rma, the events are those of an
    /// existing return. The client needs the scopes orders, returns, carrier and warehouse, or must be the
    /// operator's (--merchant).
    #[command(after_help = "\
Examples:
  backhaul returns simulate
  backhaul returns simulate 1001 --reason CHANGED_MIND
  backhaul returns simulate --rma RMA-F49S9W04GH8H42PF --pause 5s")]
    Simulate(simulate::Simulate),
}

#[derive(Args)]
pub(crate) struct Decision {
    /// Identifier of the return
    rma: String,
    /// Reason for the timeline; the portal shows that of a declined return to the shopper
    #[arg(long)]
    note: Option<String>,
}

impl Decision {
    /// Sends the decision. A repeated request, after a failure of the network, takes effect once.
    async fn send(self, client: &ApiClient, decision: &str) -> anyhow::Result<Value> {
        let Self { rma, note } = self;
        let body = Map::from_iter(note.map(|note| ("note".to_owned(), note.into())));
        let client = client.with_header("Idempotency-Key", &Uuid::new_v4().to_string());
        client.post(&["v1", "returns", &rma, decision], &body.into()).await
    }
}

#[derive(Args, Serialize)]
pub(crate) struct Guarantees {
    /// First month, for example 2026-01 [default: eleven months before the last]
    #[arg(long, value_name = "MONTH", value_parser = parse_month)]
    from: Option<String>,
    /// Last month [default: the present one]
    #[arg(long, value_name = "MONTH", value_parser = parse_month)]
    to: Option<String>,
}

impl Guarantees {
    fn check(&self) -> anyhow::Result<()> {
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from > to => {
                Err(usage_error(format!("--from {from} is after --to {to}")))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let format = connection.format();
    match &command {
        Command::List(list) => list.check()?,
        Command::Guarantees(months) => months.check()?,
        _ => {}
    }
    let all_merchants = matches!(&command, Command::List(list) if list.all_merchants);
    let client = connection.connect_to(RETURNS, all_merchants).await?;
    match command {
        Command::List(list) => {
            format.print_table(&list.run(&client).await?, "/returns", show::COLUMNS)
        }
        Command::Show { rma } => {
            format.print(&with_timeline(&client, &rma).await?, show::describe_with_timeline)
        }
        Command::Create(create) => format.print(&create.run(&client).await?, show::describe),
        Command::Cancel { rma, units, reason } => {
            let mut body = Map::new();
            if !units.is_empty() {
                body.insert("units".to_owned(), json!(units));
            }
            body.extend(reason.map(|reason| ("reason".to_owned(), reason.into())));
            let path = ["v1", "returns", &rma, "cancel"];
            format.print(&client.post(&path, &body.into()).await?, show::describe)
        }
        Command::Approve(decision) => {
            format.print(&decision.send(&client, "approve").await?, show::describe)
        }
        Command::Decline(decision) => {
            format.print(&decision.send(&client, "decline").await?, show::describe)
        }
        Command::Waive { rma, units, note } => {
            let mut body = Map::from_iter([("note".to_owned(), note.into())]);
            if !units.is_empty() {
                body.insert("units".to_owned(), json!(units));
            }
            let path = ["v1", "returns", &rma, "waive"];
            format.print(&client.post(&path, &body.into()).await?, show::describe)
        }
        Command::Guarantees(months) => {
            let report = client.search(&["v1", "guarantees"], &months).await?;
            format.print_table(&report, "/months", show::MONTH_COLUMNS)
        }
        Command::Simulate(simulate) => simulate.run(&client, format).await,
    }
}

async fn with_timeline(client: &ApiClient, rma: &str) -> anyhow::Result<Value> {
    let found = client.get(&["v1", "returns", rma]).await?;
    let path = ["v1", "returns", rma, "timeline"];
    let mut timeline = client.list(&path, "entries", NO_QUERY, usize::MAX).await?;
    if let Some(Value::Array(entries)) = timeline.get_mut("entries") {
        arrivals::add(client, rma, entries).await;
    }
    Ok(json!({ "return": found, "timeline": timeline.get("entries") }))
}

/// Parses a month like 2026-01.
fn parse_month(text: &str) -> Result<String, &'static str> {
    let first_day = NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d");
    // Months with leading zeros compare as texts.
    match first_day.is_ok() && text.len() == "2026-01".len() {
        true => Ok(text.to_owned()),
        false => Err("write a month like 2026-01"),
    }
}

/// Parses ORDER/LINE:NUMBER.
fn parse_unit(text: &str) -> Result<UnitId, String> {
    let (order, rest) = text.rsplit_once('/').ok_or("write ORDER/LINE:NUMBER")?;
    let (line, unit) = parse_line_unit(rest)?;
    Ok(UnitId { order_identifier: order.to_owned(), order_line_item_identifier: line, unit })
}

/// Parses LINE or LINE:NUMBER; the default number is 1.
fn parse_line_unit(text: &str) -> Result<(String, i32), String> {
    match text.rsplit_once(':') {
        None => Ok((text.to_owned(), 1)),
        Some((line, number)) => {
            let number = number.parse().map_err(|_nan| format!("{number} is not a unit number"));
            Ok((line.to_owned(), number?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_of_a_report_are_checked_before_the_request() {
        for text in ["2026-13", "2026-1", "2026-01-02", "January", ""] {
            assert!(parse_month(text).is_err(), "{text}");
        }
        let check = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|month| Some(parse_month(month).unwrap()));
            Guarantees { from, to }.check().map_err(|error| error.to_string())
        };
        assert_eq!(check("2026-01", "2026-01"), Ok(()));
        let reversed = check("2026-02", "2025-12").unwrap_err();
        assert_eq!(reversed, "--from 2026-02 is after --to 2025-12");
    }

    #[test]
    fn a_unit_is_written_as_order_line_and_number() {
        let unit = |text| parse_unit(text).map(|it| it.to_string());
        assert_eq!(unit("1001/L-1:2").unwrap(), "unit 2 of line L-1 of order 1001");
        assert_eq!(unit("A/7/L").unwrap(), "unit 1 of line L of order A/7");
        assert!(unit("L-1:2").is_err() && unit("1001/L:x").is_err());
    }
}
