//! `backhaul asn`: inbound ASNs.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use domain::json::Document;
use domain::printable::one_line;
use domain::warehouse::InboundAsn;
use serde_json::Value;

use super::product;
use crate::api_client::NO_QUERY;
use crate::connection::MerchantCommand;
use crate::output::{Column, computed, details, file_name, items, table, text_at, time, value};
use crate::service_urls::WAREHOUSE;
use crate::settings::read_text;

const COLUMNS: &[Column] = &[
    value("asn", "/asn_number"),
    value("shipment", "/shipment_identifier"),
    value("lines", "/lines"),
    value("expected", "/expected"),
    value("received", "/received"),
    time("registered", "/created_at"),
];

const FIELDS: &[Column] = &[
    value("asn", "/asn_number"),
    value("shipment", "/shipment_identifier"),
    value("program", "/program_identifier"),
    computed("from", |asn| location(asn, "/from")),
    computed("to", |asn| location(asn, "/to")),
    value("expected", "/expected"),
    value("received", "/received"),
    time("registered", "/created_at"),
    time("changed", "/updated_at"),
];

const LINE_COLUMNS: &[Column] = &[
    value("line", "/line_identifier"),
    value("carton", "/carton_identifier"),
    computed("product", product),
    value("expected", "/quantity"),
    value("received", "/received"),
];

const REGISTERED_FIELDS: &[Column] = &[
    value("asn", "/asn_number"),
    value("lines", "/lines"),
    value("expected", "/expected"),
    time("registered", "/registered_at"),
];

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List inbound ASNs, sorted by number
    #[command(after_help = "\
Example:
  backhaul asn list --merchant acme")]
    List {
        /// Maximum number of ASNs
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroUsize,
    },
    /// Show an inbound ASN with its expected and received units
    #[command(after_help = "\
Example:
  backhaul asn show IN-1001")]
    Show {
        /// Number of the ASN
        asn_number: String,
    },
    /// Register an inbound ASN from a JSON file
    #[command(after_help = "\
Examples:
  backhaul asn register asn.json
  backhaul asn register --merchant acme - < asn.json")]
    Register {
        /// The file, - for standard input
        file: PathBuf,
    },
}

pub(crate) async fn run(arguments: MerchantCommand<Command>) -> anyhow::Result<()> {
    let MerchantCommand { connection, command } = arguments;
    let format = connection.format();
    match command {
        Command::List { limit } => {
            let path = ["v1", "inbound_asns"];
            let items = "inbound_asns";
            let warehouse = connection.connect(WAREHOUSE).await?;
            let asns = warehouse.list(&path, items, NO_QUERY, limit.get()).await?;
            format.print_table(&asns, "/inbound_asns", COLUMNS)
        }
        Command::Show { asn_number } => {
            let path = ["v1", "inbound_asns", &asn_number];
            format.print(&connection.connect(WAREHOUSE).await?.get(&path).await?, describe)
        }
        Command::Register { file } => {
            let asn = read(&file)?;
            let warehouse = connection.connect(WAREHOUSE).await?;
            let registered = warehouse.post(&["v1", "inbound_asns"], &asn).await?;
            format.print_details(&registered, REGISTERED_FIELDS)
        }
    }
}

/// Reads an ASN from a file and validates it as the service does.
fn read(file: &Path) -> anyhow::Result<Value> {
    let text = read_text(file)?;
    let document = Document::parse(text.as_bytes())
        .with_context(|| format!("{} is not JSON", file_name(file)))?;
    if let Err(invalid) = InboundAsn::read(&document) {
        let errors =
            invalid.errors.iter().map(|error| format!("\n  {}", one_line(&error.to_string())));
        let errors: String = errors.collect();
        anyhow::bail!("{}: {invalid}:{errors}", file_name(file));
    }
    Ok(document.value().to_value())
}

fn describe(asn: &Value) -> String {
    format!("{}\n{}", details(asn, FIELDS), table(items(asn, "/lines"), LINE_COLUMNS))
}

fn location(asn: &Value, pointer: &str) -> String {
    let part = |name: &str| text_at(asn, &format!("{pointer}/{name}"));
    format!("{} {}", part("type"), part("identifier"))
}
