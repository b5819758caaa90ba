//! `demo scenario`: a return, an exchange, shipments and an outage on a running stack, and orders for the portal.
//!
//! The scenario prints each step with the message that the merchant received. It fails if a message does
//! not arrive, has no valid signature, is out of order or has the wrong content, so it also checks an
//! installation.

mod console;
mod context;
mod inbox;
mod outage;
mod portal;
mod warehouse;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use ctl::output::print;
use ctl::settings::Settings;
use domain::merchant::{Interface, ReturnPolicy};
use domain::returns::RmaStatus;
use platform::{Clock, Timestamp};
use serde_json::{Value, json};

use self::context::{DemoContext, print_step, text_at};
use crate::seed::{seed, write_settings};

/// Run a return, an exchange, shipments and an outage on the stack
///
/// Needs the clients of the operator and the merchant and the URLs of all services
/// and of the sandbox, as in .run/env. The scenario changes the merchant's endpoints and
/// settings, so use a merchant that serves no other purpose.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// Timeout of each request and of each message
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Seed the demo merchant in this folder first and use it for the scenario; the file
    /// `portal` in it gets the orders that can be returned in the portal
    #[arg(long, value_name = "FOLDER")]
    seed: Option<PathBuf>,
}

/// The address of the shopper.
const SHOPPER: &str = "ada@shopper.example";
/// The merchant's address for replies of shoppers.
const REPLY_TO: &str = "returns@demo.example";

/// One run of the scenario, with a new order.
struct Scenario {
    order: String,
    started_at: Timestamp,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut settings = Settings::load()?;
    if let Some(folder) = &arguments.seed {
        settings = seed(folder, settings).await?;
    }
    let mut context = DemoContext::new(&settings, arguments.timeout).await?;
    let started_at = Clock::system().now();
    let order = format!("DEMO-{}", started_at.format("%Y%m%d-%H%M%S%.3f"));
    let scenario = Scenario { order, started_at };
    print_step("STEP", "MESSAGE TO THE MERCHANT")?;
    configure_merchant(&context).await?;
    let rma = scenario.create_return(&mut context).await?;
    scenario.track_parcel(&mut context, &rma).await?;
    warehouse::receive(&mut context, &scenario.order, &rma).await?;
    scenario.refund(&mut context, &rma).await?;
    warehouse::ship(&mut context, &scenario.order).await?;
    outage::run(&mut context, &scenario.order).await?;
    let variables = portal::open(&context, started_at).await?;
    if let Some(folder) = arguments.seed {
        let file = folder.join("portal");
        write_settings(&file, &variables)
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    let longest = context.inbox.longest_wait.as_millis();
    Ok(print(&format!("All messages arrived signed and in order, each within {longest} ms.\n"))?)
}

/// Points every endpoint at the sandbox with a new signing secret, and sets the merchant up for the
/// steps of the scenario, whatever its settings were.
async fn configure_merchant(context: &DemoContext) -> anyhow::Result<()> {
    let merchant = ["v1", "merchants", context.merchant.as_str()];
    let ReturnPolicy { reasons, methods, .. } = ReturnPolicy::default();
    let settings = json!({
        "base_url": context.inbox.sandbox(), "managed_receiving": true, "strict_refund_dates": false,
        "returns": { "gift_card": { "sku": "GIFT", "bonus_credit_amount_cents": 500 },
                     "reasons": &reasons[..], "methods": methods },
    });
    context.auth.patch(&merchant, &settings).await?;
    if context.inbox.mails("").await?.is_some() {
        let mails = json!({ "mails": { "reply_to": REPLY_TO } });
        context.auth.patch(&merchant, &mails).await?;
    }
    let mut secrets = Vec::new();
    for interface in Interface::all() {
        let endpoint = [&merchant[..], &["endpoints", interface.name()]].concat();
        context.auth.put(&endpoint, &json!({})).await?;
        context.auth.post(&[&endpoint[..], &["resume"]].concat(), &json!({})).await?;
        // Variant lookups are not signed.
        if interface == Interface::Variants {
            continue;
        }
        let rotate = [&endpoint[..], &["rotate_secret"]].concat();
        let at_once = json!({ "overlap_seconds": 0, "force": true });
        let rotated = context.auth.post(&rotate, &at_once).await?;
        secrets.extend(rotated.get("signing_secret").cloned());
    }
    context.inbox.configure("secrets", &json!({ "secrets": secrets })).await?;
    context.inbox.reset_behaviour().await?;
    print_step("an operator sets the merchant's endpoints to the sandbox", "signing secrets")
}

impl Scenario {
    /// Publishes the order and returns two of its units: one for a refund, one for an exchange.
    async fn create_return(&self, context: &mut DemoContext) -> anyhow::Result<String> {
        self.publish_order(context, self.started_at, json!([])).await?;
        print_step(&format!("the shop publishes order {}", self.order), "-")?;
        let path = ["v1", "orders", &self.order, "returnable"];
        knows_mails(context).await?;
        let order = context.poll("the order is returnable", async || {
            context.shop.returns.get(&path).await.map(Some)
        });
        let units = order.await?.get("units").and_then(Value::as_array).map_or(0, Vec::len);
        print_step(&format!("the shopper sees {units} returnable units"), "-")?;

        let offer = context.poll("the merchant offers variants", async || {
            context.shop.exchange.get(&["v1", "variants", "BOOT"]).await.map(Some)
        });
        let variant = offer.await?.pointer("/variants/0").cloned().unwrap_or_default();
        let sku = text_at(&variant, "/sku");
        print_step("and other sizes to choose from", &format!("variant lookup: {sku} in stock"))?;

        let request = json!({
            "return_method": "mail-back",
            "units": [
                { "order_identifier": self.order, "order_line_item_identifier": "HAT", "unit": 1,
                  "return_reason": "CHANGED_MIND", "resolution": "refund" },
                { "order_identifier": self.order, "order_line_item_identifier": "BOOT", "unit": 1,
                  "return_reason": "TOO_SMALL", "resolution": "exchange", "variant": {
                    "sku": sku, "title": text_at(&variant, "/title"),
                    "unit_price_amount_cents": variant.get("unit_price_amount_cents") } },
            ],
        });
        let portal = context.shop.returns.with_header("Idempotency-Key", &self.order);
        let rma = text_at(&portal.post(&["v1", "returns"], &request).await?, "/rma_identifier");
        let (message, _) = context.rma_message("rma.created", &rma).await?;
        print_step(&format!("the shopper returns a hat and a boot: {rma}"), &message)?;
        show_mail(context, &rma).await?;
        self.exchange(context, &rma, &sku).await?;
        Ok(rma)
    }

    async fn exchange(
        &self,
        context: &mut DemoContext,
        rma: &str,
        sku: &str,
    ) -> anyhow::Result<()> {
        let is_of_order = |body: &Value| text_at(body, "/original_order_id") == self.order;
        let body = context.inbox.receive("exchange_order.created", is_of_order).await?;
        expect_text(&body, "/items/0/sku", sku)?;
        print_step("the boot is exchanged", &format!("exchange order: {sku}"))?;
        let (message, body) = context.rma_message("rma.exchange_placed", rma).await?;
        let exchange_order = text_at(&body, "/items/1/exchange_order_identifier");
        print_step(&format!("the shop places exchange order {exchange_order}"), &message)
    }

    /// Reports the carrier's events.
    async fn track_parcel(&self, context: &mut DemoContext, rma: &str) -> anyhow::Result<()> {
        let number = format!("1Z{}", self.started_at.timestamp_millis());
        for (event, service_event, status, step) in [
            ("label", "rma.tracking_updated", "PRE_TRANSIT", "the carrier creates a label"),
            ("accepted", "rma.dropped_off", "ACCEPTED", "the shopper drops the parcel off"),
            ("in_transit", "rma.in_transit", "TRANSIT", "the carrier scans the parcel"),
        ] {
            let report = json!({
                "event_identifier": format!("{number}-{event}"), "event": event,
                "rma_identifier": rma, "tracking_number": number,
            });
            context.operator.returns.post(&["v1", "carrier_events"], &report).await?;
            let (message, body) = context.rma_message(service_event, rma).await?;
            expect_text(&body, "/items/0/package_tracking_status", status)?;
            print_step(step, &format!("{message}, {status}"))?;
        }
        Ok(())
    }

    async fn refund(&self, context: &mut DemoContext, rma: &str) -> anyhow::Result<()> {
        let line = |number: u8, line: &str| {
            json!({ "identifier": format!("{}-RL{number}", self.order), "quantity": 1,
                    "order_item_identifier": line })
        };
        let refunds = json!([{
            "identifier": format!("{}-R1", self.order), "total_refund_amount_cents": 4600,
            "refund_line_items": [line(1, "HAT"), line(2, "BOOT")],
            "created_at": self.started_at, "rma_identifier": rma,
        }]);
        self.publish_order(context, self.started_at + Duration::from_secs(1), refunds).await?;
        let (message, body) = context.rma_message("rma.refunded", rma).await?;
        let status = RmaStatus::Refunded.as_str();
        expect_text(&body, "/status", status)?;
        print_step("the shop publishes the refund", &format!("{message}, {status}"))
    }

    async fn publish_order(
        &self,
        context: &DemoContext,
        updated_at: Timestamp,
        refunds: Value,
    ) -> anyhow::Result<()> {
        let line = |identifier: &str, title: &str, quantity: i64, price: i64, tax: i64| {
            json!({
                "identifier": identifier, "sku": format!("{identifier}-1"), "title": title,
                "quantity": quantity, "quantity_shipped": quantity, "quantity_canceled": 0,
                "shipped_date": self.started_at, "variant_identifier": identifier,
                "unit_price_amount_cents": price, "product_amount_cents": price * quantity,
                "tax_amount_cents": tax, "discount_amount_cents": 0,
            })
        };
        let address = json!({ "name": "Ada Adler", "street1": "1 Elm Street", "city": "Albany",
            "state": "NY", "zip_code": "12207", "country_code": "US" });
        let order = json!({
            "identifier": self.order, "status": "Shipped", "currency": "USD",
            "product_amount_cents": 6500, "tax_amount_cents": 600, "total_amount_cents": 7100,
            "discount_amount_cents": 0, "shipping_amount_cents": 0, "shipping_tax_amount_cents": 0,
            "created_at": self.started_at, "updated_at": updated_at, "refunds": refunds,
            "items": [line("HAT", "Felt hat", 1, 1500, 100), line("BOOT", "Walking boot", 2, 2500, 500)],
            "customer": { "identifier": "ada", "email": SHOPPER },
            "shipping_address": address, "billing_address": address,
            "transactions": [], "discounts": [],
        });
        let message = json!({ "returns_portal_order": { "orders": [order] } });
        let order_intake = context.shop.orders.with_header("Api-Version", "3");
        order_intake.post(&["returns_portal_orders"], &message).await?;
        Ok(())
    }
}

/// Waits until rma-engine knows that shoppers get mails, if the sandbox receives them.
async fn knows_mails(context: &DemoContext) -> anyhow::Result<()> {
    if context.inbox.mails("").await?.is_none() {
        return Ok(());
    }
    let preview = json!({ "event": "confirmed" });
    let known = context.poll("rma-engine knows the address for replies", async || {
        let mail = context.operator.returns.post(&["v1", "mails", "preview"], &preview).await?;
        Ok((text_at(&mail, "/reply_to") == REPLY_TO).then_some(mail))
    });
    known.await?;
    Ok(())
}

/// Shows the first mail to the shopper about a return, if the sandbox receives mails.
async fn show_mail(context: &DemoContext, rma: &str) -> anyhow::Result<()> {
    if context.inbox.mails(SHOPPER).await?.is_none() {
        return Ok(());
    }
    let mail = context.poll("the shopper gets a mail", async || {
        let mails = context.inbox.mails(SHOPPER).await?.unwrap_or_default();
        Ok(mails.into_iter().find(|mail| text_at(mail, "/subject").contains(rma)))
    });
    print_step("and gets a mail", &format!("mail: {}", text_at(&mail.await?, "/subject")))
}

/// Fails unless the text at a JSON pointer of a message is as expected.
fn expect_text(body: &Value, pointer: &str, expected: &str) -> anyhow::Result<()> {
    let actual = text_at(body, pointer);
    if actual != expected {
        bail!("{pointer} of a message is {actual:?} instead of {expected:?}: {body}");
    }
    Ok(())
}
