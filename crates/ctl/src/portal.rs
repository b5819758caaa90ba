//! `backhaul portal`: links to the returns portal.

use clap::Subcommand;
use serde_json::json;
use uuid::Uuid;

use crate::connection::MerchantCommand;
use crate::output::{Column, time, value};
use crate::service_urls::RETURNS;

const FIELDS: &[Column] = &[
    value("id", "/id"),
    value("link", "/url"),
    value("gift code", "/gift_code"),
    time("works until", "/expires_at"),
];

const RECORD: &[Column] = &[
    value("id", "/id"),
    value("order", "/order_identifier"),
    value("gift", "/is_gift"),
    value("made by", "/created_by"),
    time("made at", "/created_at"),
    time("works until", "/expires_at"),
    value("revoked by", "/revoked_by"),
    time("revoked at", "/revoked_at"),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a link with which a shopper returns an order without looking it up
    ///
    /// Everyone who has the link can return units of the order. Each command makes another
    /// link, and all of them work until they expire or are revoked.
    #[command(after_help = "\
Examples:
  backhaul portal link 1001
  backhaul portal link 1001 --gift --valid-days 365
  backhaul portal link 1001 --merchant acme")]
    Link {
        /// Identifier of the order
        order: String,
        /// For the giftee, who sees no amounts; also shows the code for the gift slip
        #[arg(long)]
        gift: bool,
        /// Days until the link expires
        #[arg(long, value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u16).range(1..=730))]
        valid_days: u16,
    },
    /// List the links to an order, and who made them
    #[command(after_help = "\
Examples:
  backhaul portal links 1001
  backhaul portal links 1001 --merchant acme")]
    Links {
        /// Identifier of the order
        order: String,
    },
    /// Revoke a link, so that it opens nothing from now on
    #[command(after_help = "\
Examples:
  backhaul portal revoke 0193b0a4-7a3e-7c55-9d3f-0d6a3c1f2b10")]
    Revoke {
        /// Id of the link, from `backhaul portal links`
        id: Uuid,
    },
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let client = connection.connect(RETURNS).await?;
    let format = connection.format();
    match command {
        Command::Link { order, gift, valid_days } => {
            let body =
                json!({ "order_identifier": order, "is_gift": gift, "valid_days": valid_days });
            format.print_details(&client.post(&["v1", "deep_links"], &body).await?, FIELDS)
        }
        Command::Links { order } => {
            let query = [("order_identifier", order)];
            let links = client.search(&["v1", "deep_links"], &query).await?;
            format.print_table(&links, "/deep_links", RECORD)
        }
        Command::Revoke { id } => {
            let id = id.to_string();
            let path = ["v1", "deep_links", &id, "revoke"];
            format.print_details(&client.trigger(&path, &[]).await?, RECORD)
        }
    }
}
