//! `backhaul asn`: what merchants expect to arrive.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use domain::json::Document;
use domain::warehouse::{Identifier, InboundAsn};
use platform::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::Place;
use crate::operator::Listing;
use crate::output::{or_dash, properties, table, time};
use crate::party::Party;
use crate::places::WAREHOUSE;

/// See and register what will arrive in a warehouse
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    party: Party,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List inbound ASNs, sorted by number
    List {
        /// How many at the most
        #[arg(long, value_name = "N", default_value = "50")]
        limit: NonZeroUsize,
    },
    /// Show an inbound ASN: what is expected and what was received
    Show { asn_number: String },
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

#[derive(Deserialize)]
struct Page {
    inbound_asns: Vec<Summary>,
}

#[derive(Deserialize)]
struct Summary {
    asn_number: Identifier,
    shipment_identifier: Option<Identifier>,
    lines: u64,
    expected: u64,
    received: u64,
    created_at: Timestamp,
}

#[derive(Deserialize)]
struct Details {
    asn_number: Identifier,
    shipment_identifier: Option<Identifier>,
    program_identifier: Option<Identifier>,
    from: Place,
    to: Place,
    expected: u64,
    received: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    line_identifier: Identifier,
    carton_identifier: Option<Identifier>,
    sku: Option<String>,
    upc: Option<String>,
    quantity: u64,
    received: u64,
}

#[derive(Deserialize)]
struct Registered {
    asn_number: Identifier,
    lines: u64,
    expected: u64,
    registered_at: Timestamp,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { party, command } = arguments;
    let format = party.format();
    match command {
        Command::List { limit } => {
            let listing = Listing {
                path: &["v1", "inbound_asns"],
                merchant: None,
                items: "inbound_asns",
                cursor: "after",
                most: limit.get(),
            };
            let notifier = party.connect(WAREHOUSE).await?;
            format.show(notifier.list(listing).await?, tabulate)
        }
        Command::Show { asn_number } => {
            let notifier = party.connect(WAREHOUSE).await?;
            format.show(notifier.get(&["v1", "inbound_asns", &asn_number]).await?, describe)
        }
        Command::Register { file } => {
            let asn = read(&file)?;
            let notifier = party.connect(WAREHOUSE).await?;
            format.show(notifier.post(&["v1", "inbound_asns"], asn).await?, confirm)
        }
    }
}

/// An ASN from a file, checked as the service will check it.
fn read(file: &Path) -> anyhow::Result<Map<String, Value>> {
    let text = if file == Path::new("-") {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(file)
    };
    let text = text.with_context(|| format!("{} cannot be read", file.display()))?;
    let document = Document::parse(text.as_bytes())
        .with_context(|| format!("{} is not JSON", file.display()))?;
    if let Err(invalid) = InboundAsn::read(&document) {
        let faults: Vec<_> = invalid.errors.iter().map(|error| format!("\n  {error}")).collect();
        anyhow::bail!("{}: {invalid}:{}", file.display(), faults.concat());
    }
    match document.value().to_value() {
        Value::Object(asn) => Ok(asn),
        _ => anyhow::bail!("{} is not an ASN", file.display()),
    }
}

fn tabulate(page: &Page) -> String {
    let row = |asn: &Summary| {
        [
            asn.asn_number.to_string(),
            or_dash(asn.shipment_identifier.as_ref()),
            asn.lines.to_string(),
            asn.expected.to_string(),
            asn.received.to_string(),
            time(&asn.created_at),
        ]
    };
    let headings = ["asn", "shipment", "lines", "expected", "received", "registered"];
    table(headings, page.inbound_asns.iter().map(row))
}

fn describe(asn: &Details) -> String {
    let mut text = properties([
        ("asn", asn.asn_number.to_string()),
        ("shipment", or_dash(asn.shipment_identifier.as_ref())),
        ("program", or_dash(asn.program_identifier.as_ref())),
        ("from", asn.from.words()),
        ("to", asn.to.words()),
        ("expected", asn.expected.to_string()),
        ("received", asn.received.to_string()),
        ("registered", time(&asn.created_at)),
        ("changed", time(&asn.updated_at)),
    ]);
    text.push('\n');
    let row = |line: &Line| {
        [
            line.line_identifier.to_string(),
            or_dash(line.carton_identifier.as_ref()),
            or_dash(line.sku.as_ref().or(line.upc.as_ref())),
            line.quantity.to_string(),
            line.received.to_string(),
        ]
    };
    let headings = ["line", "carton", "product", "expected", "received"];
    text + &table(headings, asn.lines.iter().map(row))
}

fn confirm(registered: &Registered) -> String {
    let Registered { asn_number, lines, expected, registered_at } = registered;
    properties([
        ("asn", asn_number.to_string()),
        ("lines", lines.to_string()),
        ("expected", expected.to_string()),
        ("registered", time(registered_at)),
    ])
}
