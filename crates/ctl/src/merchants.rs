//! `backhaul merchant`: who returns are run for.

mod settings;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use domain::access::MerchantId;
use domain::merchant::{
    Endpoint, MethodOffer, ReturnPolicy, ReturnReason, Settings, SupportContact,
};
use platform::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Usage;
use crate::endpoints;
use crate::operator::{Flags, Listing};
use crate::output::{money, or_dash, properties, table, time, yes_or_no};

/// Add, list, show and change merchants
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a merchant
    #[command(after_help = "\
Example:
  backhaul merchant add acme --name 'Acme Outdoor' --time-zone America/New_York --currency USD")]
    Add(Box<Add>),
    /// List all merchants
    List,
    /// Show a merchant with its settings and endpoints
    Show {
        /// Its identifier
        merchant: MerchantId,
    },
    /// Change a merchant's settings; what is not said stays
    #[command(after_help = "\
Examples:
  backhaul merchant set acme --return-window-days 60 --strict-amounts true
  backhaul merchant set acme --base-url https://api.acme.example/hooks
  backhaul merchant set acme --final-sale-tag Clearance --final-sale-tag Outlet
  backhaul merchant set acme --return-reason 'TOO_SMALL:exchange=Too small' --return-reason 'OTHER=Another'
  backhaul merchant set acme --return-method mail-back=595 --gift-card-sku GIFT --gift-card-bonus-cents 500")]
    Set(Box<Set>),
    /// Announce every merchant and every revocation in force again, for a service whose copy was lost
    Republish,
}

#[derive(Args)]
struct Add {
    /// Its name in tokens, headers and queues, for good: lower-case letters, digits, hyphens
    merchant: MerchantId,
    /// Its name for people
    #[arg(long)]
    name: String,
    #[command(flatten)]
    settings: settings::Flags,
}

#[derive(Args)]
struct Set {
    /// Its identifier
    merchant: MerchantId,
    /// Its name for people
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    settings: settings::Flags,
}

/// A merchant as the service shows it.
#[derive(Deserialize)]
pub(crate) struct Merchant {
    pub(crate) identifier: String,
    version: i64,
    #[serde(flatten)]
    pub(crate) settings: Settings,
    pub(crate) endpoints: BTreeMap<String, Endpoint<String>>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Deserialize)]
struct Merchants {
    merchants: Vec<Merchant>,
}

#[derive(Deserialize)]
struct Republished {
    merchants: u64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { flags, command } = arguments;
    let format = flags.format();
    match command {
        Command::Add(add) => {
            let Add { merchant, name, settings } = *add;
            let mut body = settings.change(Some(name));
            body.insert("identifier".to_owned(), json!(merchant));
            format.show(flags.connect().await?.post(&["v1", "merchants"], body).await?, describe)
        }
        Command::List => {
            format.show(list(&flags).await?, |found: &Merchants| tabulate(&found.merchants))
        }
        Command::Show { merchant } => {
            let path = ["v1", "merchants", merchant.as_str()];
            format.show(flags.connect().await?.get(&path).await?, describe)
        }
        Command::Set(set) => {
            let Set { merchant, name, settings } = *set;
            let change = settings.change(name);
            if change.is_empty() {
                return Err(Usage(
                    "say what to change: see backhaul merchant set --help".to_owned(),
                )
                .into());
            }
            let path = ["v1", "merchants", merchant.as_str()];
            format.show(flags.connect().await?.patch(&path, change).await?, describe)
        }
        Command::Republish => {
            let path = ["v1", "merchants", "republish"];
            let answer = flags.connect().await?.post(&path, Map::new()).await?;
            format.show(answer, |done: &Republished| {
                format!("announced {} merchants, and every revocation in force\n", done.merchants)
            })
        }
    }
}

async fn list(flags: &Flags) -> anyhow::Result<Value> {
    let listing = Listing {
        path: &["v1", "merchants"],
        merchant: None,
        items: "merchants",
        cursor: "after",
        most: usize::MAX,
    };
    flags.connect().await?.list(listing).await
}

fn tabulate(merchants: &[Merchant]) -> String {
    let row = |merchant: &Merchant| {
        let Settings { name, time_zone, currency, .. } = &merchant.settings;
        [
            merchant.identifier.clone(),
            name.clone(),
            time_zone.clone(),
            currency.clone(),
            format!("{} days", merchant.settings.return_window_days),
            merchant.endpoints.len().to_string(),
            time(&merchant.updated_at),
        ]
    };
    let headings = ["merchant", "name", "time zone", "currency", "window", "endpoints", "changed"];
    table(headings, merchants.iter().map(row))
}

fn describe(merchant: &Merchant) -> String {
    let settings = &merchant.settings;
    let contact = settings.support_contact.as_ref().map(|contact| {
        let SupportContact { email, name, phone } = contact;
        [Some(email), name.as_ref(), phone.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect::<Vec<_>>()
    });
    let tags = (!settings.final_sale_tags.is_empty()).then(|| settings.final_sale_tags.join(", "));
    let mut text = properties([
        ("merchant", merchant.identifier.clone()),
        ("name", settings.name.clone()),
        ("time zone", settings.time_zone.clone()),
        ("currency", settings.currency.clone()),
        ("return window", format!("{} days", settings.return_window_days)),
        ("final-sale tags", or_dash(tags)),
        ("return reasons", reasons(&settings.returns)),
        ("return methods", methods(settings)),
        (
            "gift card",
            or_dash(settings.returns.gift_card.as_ref().map(|card| {
                format!(
                    "{} with {} on top",
                    card.sku,
                    money(card.bonus_credit_amount_cents, &settings.currency)
                )
            })),
        ),
        ("managed receiving", yes_or_no(settings.managed_receiving)),
        ("strict amounts", yes_or_no(settings.strict_amounts)),
        ("strict refund dates", yes_or_no(settings.strict_refund_dates)),
        ("support contact", or_dash(contact.map(|parts| parts.join(", ")))),
        ("base URL", or_dash(settings.base_url.as_ref())),
        ("version", merchant.version.to_string()),
        ("created", time(&merchant.created_at)),
        ("changed", time(&merchant.updated_at)),
    ]);
    if !merchant.endpoints.is_empty() {
        text.push('\n');
        text.push_str(&endpoints::tabulate(merchant));
    }
    text
}

fn reasons(policy: &ReturnPolicy) -> String {
    let word = |reason: &ReturnReason| match reason.offers_exchange {
        true => format!("{} (exchange)", reason.code),
        false => reason.code.clone(),
    };
    policy.reasons.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn methods(settings: &Settings) -> String {
    let word = |offer: &MethodOffer| match offer.shipping_cost_cents {
        0 => offer.method.to_string(),
        cents => format!("{} ({})", offer.method, money(cents, &settings.currency)),
    };
    settings.returns.methods.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn acme() -> Value {
        json!({
            "identifier": "acme", "version": 3, "name": "Acme Outdoor", "time_zone": "UTC",
            "currency": "USD", "returns": {
                "reasons": [
                    { "code": "TOO_SMALL", "label": "Too small", "offers_exchange": true },
                    { "code": "OTHER", "label": "Another", "offers_exchange": false }
                ],
                "methods": [{ "method": "mail-back", "shipping_cost_cents": 595 }],
                "free_exchange_shipping": true,
                "gift_card": { "sku": "GIFT", "bonus_credit_amount_cents": 500 }
            },
            "managed_receiving": false, "return_window_days": 60,
            "final_sale_tags": ["Clearance", "Outlet"], "strict_amounts": true,
            "strict_refund_dates": false, "base_url": "https://api.acme.example/hooks/",
            "support_contact": { "email": "help@acme.example", "name": null, "phone": "+1 555" },
            "endpoints": {
                "rma": {
                    "url": null, "path": null, "headers": {}, "timeout_ms": null, "paused": false,
                    "authentication": { "kind": "none" }, "signing_secrets": []
                },
                "outbound-asn": {
                    "url": "https://wms.acme.example/asn", "path": null, "headers": {"x-a": "b"},
                    "timeout_ms": 5000, "paused": true, "signing_secrets": [],
                    "authentication": { "kind": "basic", "username": "u", "password": "********" }
                }
            },
            "created_at": "2026-11-15T03:48:13.123456Z", "updated_at": "2026-11-16T03:48:13Z"
        })
    }

    #[test]
    fn a_merchant_is_described_in_full() {
        let acme = serde_json::from_value(acme()).unwrap();
        expect![[r#"
            merchant             acme
            name                 Acme Outdoor
            time zone            UTC
            currency             USD
            return window        60 days
            final-sale tags      Clearance, Outlet
            return reasons       TOO_SMALL (exchange), OTHER
            return methods       mail-back (5.95 USD)
            gift card            GIFT with 5.00 USD on top
            managed receiving    no
            strict amounts       yes
            strict refund dates  no
            support contact      help@acme.example, +1 555
            base URL             https://api.acme.example/hooks/
            version              3
            created              2026-11-15 03:48:13Z
            changed              2026-11-16 03:48:13Z

            INTERFACE     STATE   ADDRESS                              AUTHENTICATION  TIME-OUT
            outbound-asn  paused  https://wms.acme.example/asn         basic           5000 ms
            rma           active  https://api.acme.example/hooks/rmas  none            -
        "#]]
        .assert_eq(&describe(&acme));
        expect![[r#"
            MERCHANT  NAME          TIME ZONE  CURRENCY  WINDOW   ENDPOINTS  CHANGED
            acme      Acme Outdoor  UTC        USD       60 days  2          2026-11-16 03:48:13Z
        "#]]
        .assert_eq(&tabulate(&[acme]));
    }
}
