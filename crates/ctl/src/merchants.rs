//! `backhaul merchant`: merchants and their settings.

mod settings;

use clap::{Args, Subcommand};
use domain::access::MerchantId;
use serde_json::{Value, json};

use crate::api_client::NO_QUERY;
use crate::connection::OperatorArgs;
use crate::endpoints::{endpoints_table, mark_disabled};
use crate::output::{Column, Format, computed, details, items, join, money, text_at, time, value};
use crate::usage_error;

const COLUMNS: &[Column] = &[
    value("merchant", "/identifier"),
    value("name", "/name"),
    value("time zone", "/time_zone"),
    value("currency", "/currency"),
    computed("window", return_window),
    computed("endpoints", |merchant| {
        let endpoints = merchant.get("endpoints").and_then(Value::as_object);
        endpoints.map_or(0, serde_json::Map::len).to_string()
    }),
    time("changed", "/updated_at"),
];

const FIELDS: &[Column] = &[
    value("merchant", "/identifier"),
    value("name", "/name"),
    value("time zone", "/time_zone"),
    value("currency", "/currency"),
    computed("return window", return_window),
    value("final-sale tags", "/final_sale_tags"),
    value("express max weight", "/express_max_weight"),
    value("concept", "/concept"),
    computed("return reasons", return_reasons),
    computed("return methods", return_methods),
    computed("gift card", gift_card),
    value("managed receiving", "/managed_receiving"),
    value("strict amounts", "/strict_amounts"),
    value("strict refund dates", "/strict_refund_dates"),
    computed("support contact", |merchant| {
        let parts = ["email", "name", "phone"].map(|part| format!("/support_contact/{part}"));
        let known = parts.iter().filter_map(|part| merchant.pointer(part)?.as_str());
        join(known.map(str::to_owned))
    }),
    value("base URL", "/base_url"),
    value("version", "/version"),
    time("created", "/created_at"),
    time("changed", "/updated_at"),
];

/// Add, list, show and change merchants
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    operator: OperatorArgs,
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
        /// Identifier of the merchant
        merchant: MerchantId,
    },
    /// Change settings of a merchant; settings without a flag stay as they are
    #[command(after_help = "\
Examples:
  backhaul merchant set acme --return-window-days 60 --strict-amounts true
  backhaul merchant set acme --base-url https://api.acme.example/hooks
  backhaul merchant set acme --final-sale-tag Clearance --final-sale-tag Outlet
  backhaul merchant set acme --return-reason 'TOO_SMALL:exchange=Too small' --return-reason 'OTHER=Another'
  backhaul merchant set acme --return-method mail-back=595 --gift-card-sku GIFT --gift-card-bonus-cents 500")]
    Set(Box<Set>),
    /// Publish every merchant and every active revocation again, for a service that lost its replica
    Republish,
}

#[derive(Args)]
struct Add {
    /// Permanent identifier in tokens, headers and queues: lower-case letters, digits, hyphens
    merchant: MerchantId,
    /// Display name
    #[arg(long)]
    name: String,
    #[command(flatten)]
    settings: settings::SettingsArgs,
}

#[derive(Args)]
struct Set {
    /// Identifier of the merchant
    merchant: MerchantId,
    /// Display name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    settings: settings::SettingsArgs,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { operator, command } = arguments;
    let format = operator.format();
    let merchant = match command {
        Command::Add(add) => {
            let Add { merchant, name, settings } = *add;
            let mut body = settings.body(Some(name));
            body.insert("identifier".to_owned(), json!(merchant));
            operator.connect().await?.post(&["v1", "merchants"], &body.into()).await?
        }
        Command::List => return list(&operator, format).await,
        Command::Show { merchant } => {
            let client = operator.connect().await?;
            let mut shown = client.get(&["v1", "merchants", merchant.as_str()]).await?;
            mark_disabled(&client, &merchant, &mut shown).await;
            shown
        }
        Command::Set(set) => {
            let Set { merchant, name, settings } = *set;
            let body = settings.body(name);
            if body.is_empty() {
                return Err(usage_error("no setting to change: see backhaul merchant set --help"));
            }
            let path = ["v1", "merchants", merchant.as_str()];
            operator.connect().await?.patch(&path, &body.into()).await?
        }
        Command::Republish => {
            let path = ["v1", "merchants", "republish"];
            let response = operator.connect().await?.post(&path, &json!({})).await?;
            return format.print(&response, |response| {
                let count = text_at(response, "/merchants");
                format!("published {count} merchants and all active revocations\n")
            });
        }
    };
    format.print(&merchant, describe)
}

async fn list(operator: &OperatorArgs, format: Format) -> anyhow::Result<()> {
    let auth = operator.connect().await?;
    let merchants = auth.list(&["v1", "merchants"], "merchants", NO_QUERY, usize::MAX).await?;
    format.print_table(&merchants, "/merchants", COLUMNS)
}

fn describe(merchant: &Value) -> String {
    let fields = details(merchant, FIELDS);
    match merchant.get("endpoints").and_then(Value::as_object) {
        Some(endpoints) if !endpoints.is_empty() => {
            format!("{fields}\n{}", endpoints_table(merchant))
        }
        _ => fields,
    }
}

fn return_window(merchant: &Value) -> String {
    format!("{} days", text_at(merchant, "/return_window_days"))
}

fn return_reasons(merchant: &Value) -> String {
    join(items(merchant, "/returns/reasons").iter().map(|reason| {
        let code = text_at(reason, "/code");
        let exchange = reason.get("offers_exchange") == Some(&json!(true));
        if exchange { format!("{code} (exchange)") } else { code }
    }))
}

fn return_methods(merchant: &Value) -> String {
    join(items(merchant, "/returns/methods").iter().map(|offer| {
        let method = text_at(offer, "/method");
        match offer.get("shipping_cost_cents").and_then(Value::as_i64) {
            None | Some(0) => method,
            Some(cents) => format!("{method} ({})", money(cents, &text_at(merchant, "/currency"))),
        }
    }))
}

fn gift_card(merchant: &Value) -> String {
    let bonus = merchant.pointer("/returns/gift_card/bonus_credit_amount_cents");
    match bonus.and_then(Value::as_i64) {
        None => "-".to_owned(),
        Some(bonus) => format!(
            "{} with a bonus of {}",
            text_at(merchant, "/returns/gift_card/sku"),
            money(bonus, &text_at(merchant, "/currency"))
        ),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::output::table;

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
            "final_sale_tags": ["Clearance", "Outlet"], "express_max_weight": 2.5, "concept": "Acme Sport",
            "strict_amounts": true,
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
    fn a_merchant_is_shown_with_all_settings_and_endpoints() {
        expect![[r#"
            merchant             acme
            name                 Acme Outdoor
            time zone            UTC
            currency             USD
            return window        60 days
            final-sale tags      Clearance, Outlet
            express max weight   2.5
            concept              Acme Sport
            return reasons       TOO_SMALL (exchange), OTHER
            return methods       mail-back (5.95 USD)
            gift card            GIFT with a bonus of 5.00 USD
            managed receiving    no
            strict amounts       yes
            strict refund dates  no
            support contact      help@acme.example, +1 555
            base URL             https://api.acme.example/hooks/
            version              3
            created              2026-11-15 03:48:13Z
            changed              2026-11-16 03:48:13Z

            INTERFACE     STATE   URL                                  AUTHENTICATION  TIMEOUT
            outbound-asn  paused  https://wms.acme.example/asn         basic           5000 ms
            rma           active  https://api.acme.example/hooks/rmas  none            -
        "#]]
        .assert_eq(&describe(&acme()));
        expect![[r#"
            MERCHANT  NAME          TIME ZONE  CURRENCY  WINDOW   ENDPOINTS  CHANGED
            acme      Acme Outdoor  UTC        USD       60 days  2          2026-11-16 03:48:13Z
        "#]]
        .assert_eq(&table([&acme()], COLUMNS));
    }
}
