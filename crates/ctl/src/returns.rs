//! `backhaul returns`: what shoppers send back.

mod create;
mod show;
mod simulate;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use domain::returns::{Rma, Status, UnitId};
use platform::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::operator::Operator;
use crate::party::Party;
use crate::places::RETURNS;

/// See, start, cancel and act out returns
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    party: Party,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List returns, newest first
    #[command(after_help = "\
Examples:
  backhaul returns list --status CREATED
  backhaul returns list --email ada@shopper.example --merchant acme")]
    List(List),
    /// Show a return, its units and everything that happened to it
    Show {
        /// Its identifier
        rma: String,
    },
    /// Start a return
    #[command(after_help = "\
Examples:
  backhaul returns create --order 1001 --unit LINE-1 --reason CHANGED_MIND
  backhaul returns create --order 1001 --unit LINE-1:2 --reason TOO_SMALL --exchange-for BOOT-M
  backhaul returns create --order 1001 --unit LINE-1 --unit LINE-2 --reason OTHER --gift-card
  backhaul returns create --body return.json")]
    Create(Box<create::Create>),
    /// Cancel a return, or some of its units; they can be returned again
    #[command(after_help = "\
Examples:
  backhaul returns cancel RMA-1
  backhaul returns cancel RMA-1 --unit 1001/LINE-1:2")]
    Cancel {
        /// Its identifier
        rma: String,
        /// A unit, ORDER/LINE:NUMBER; repeat it for several; all of them unless given
        #[arg(long = "unit", value_name = "UNIT", value_parser = unit)]
        units: Vec<UnitId>,
        /// Why, for the record
        #[arg(long)]
        reason: Option<String>,
    },
    /// Act a return out: label, scan, receipt, refund. For sandbox environments
    ///
    /// Returns everything of the order that can be returned, then plays carrier, warehouse and
    /// shop, so that the merchant's endpoint receives the messages of a return that is refunded; no
    /// exchange, no cancellation. The client needs the scopes orders, returns, carrier and warehouse,
    /// or be the operator's (--merchant).
    #[command(after_help = "\
Example:
  backhaul returns simulate 1001")]
    Simulate(simulate::Simulate),
}

#[derive(Args)]
struct List {
    /// With units of this order
    #[arg(long, value_name = "ORDER")]
    order: Option<String>,
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.map(Status::as_str)))]
    status: Option<String>,
    /// Of the shopper, or of a gift the giftee, with this e-mail address
    #[arg(long)]
    email: Option<String>,
    #[arg(long, value_name = "NUMBER")]
    tracking_number: Option<String>,
    /// Made at this time or later
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Made before this time
    #[arg(long, value_name = "TIME")]
    to: Option<Timestamp>,
    /// Maximum number of entries, up to 200
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u16,
}

#[derive(Deserialize)]
struct Returns {
    returns: Vec<Rma>,
}

impl List {
    fn query(self) -> Vec<(&'static str, String)> {
        let time = |at: Timestamp| at.to_rfc3339();
        let given = [
            ("order_identifier", self.order),
            ("status", self.status),
            ("email", self.email),
            ("tracking_number", self.tracking_number),
            ("from", self.from.map(time)),
            ("to", self.to.map(time)),
            ("limit", Some(self.limit.to_string())),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { party, command } = arguments;
    let format = party.format();
    let engine = party.connect(RETURNS).await?;
    match command {
        Command::List(list) => {
            let found = engine.search(&["v1", "returns"], &list.query()).await?;
            format.show(found, |found: &Returns| show::tabulate(&found.returns))
        }
        Command::Show { rma } => format.show(with_timeline(&engine, &rma).await?, show::describe),
        Command::Create(create) => {
            let made = create.send(&engine).await?;
            format.show(made, |rma: &Rma| show::properties_of(rma))
        }
        Command::Cancel { rma, units, reason } => {
            let mut body = Map::new();
            if !units.is_empty() {
                body.insert("units".to_owned(), json!(units));
            }
            body.extend(reason.map(|reason| ("reason".to_owned(), reason.into())));
            let canceled = engine.post(&["v1", "returns", &rma, "cancel"], body).await?;
            format.show(canceled, |rma: &Rma| show::properties_of(rma))
        }
        Command::Simulate(simulate) => simulate.act(&party, &engine).await,
    }
}

/// A return with the first of what happened to it, which for nearly every return is all.
async fn with_timeline(engine: &Operator, rma: &str) -> anyhow::Result<Value> {
    let found = engine.get(&["v1", "returns", rma]).await?;
    let path = ["v1", "returns", rma, "timeline"];
    let mut timeline = engine.search(&path, &[("limit", "200".to_owned())]).await?;
    let entries = timeline.get_mut("entries").map(Value::take).unwrap_or_default();
    Ok(json!({ "return": found, "timeline": entries }))
}

/// A unit as people write it.
fn unit(text: &str) -> Result<UnitId, String> {
    let (order, rest) = text.rsplit_once('/').ok_or("say ORDER/LINE:NUMBER")?;
    let (line, unit) = line_unit(rest)?;
    Ok(UnitId { order_identifier: order.to_owned(), order_line_item_identifier: line, unit })
}

/// A line and the number of a unit, the first unless said.
fn line_unit(text: &str) -> Result<(String, i32), String> {
    match text.rsplit_once(':') {
        None => Ok((text.to_owned(), 1)),
        Some((line, number)) => {
            let number = number.parse().map_err(|_nan| format!("{number} is no number of a unit"));
            Ok((line.to_owned(), number?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::unit;

    #[test]
    fn units_are_written_as_order_line_and_number() {
        let unit = |text| unit(text).map(|it| it.to_string());
        assert_eq!(unit("1001/L-1:2").unwrap(), "unit 2 of line L-1 of order 1001");
        assert_eq!(unit("A/7/L").unwrap(), "unit 1 of line L of order A/7");
        assert!(unit("L-1:2").is_err() && unit("1001/L:x").is_err());
    }
}
