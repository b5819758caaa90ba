//! `backhaul portal`: links to the returns portal.

use clap::Subcommand;
use serde_json::json;

use crate::connection::MerchantCommand;
use crate::output::{Column, time, value};
use crate::service_urls::RETURNS;

const FIELDS: &[Column] =
    &[value("link", "/url"), value("gift code", "/gift_code"), time("works until", "/expires_at")];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Make a link with which a shopper returns an order without looking it up
    ///
    /// Everyone who has the link can return units of the order. Nothing is stored: each
    /// command makes another link, and all of them work until they expire.
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
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let Command::Link { order, gift, valid_days } = command;
    let client = connection.connect(RETURNS).await?;
    let body = json!({ "order_identifier": order, "is_gift": gift, "valid_days": valid_days });
    let link = client.post(&["v1", "deep_links"], &body).await?;
    connection.format().print_details(&link, FIELDS)
}
