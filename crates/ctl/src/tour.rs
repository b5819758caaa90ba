//! `backhaul tour`: the whole product at work, one line for each thing that happens, with what the
//! merchant received of it. It fails when something does not arrive, arrives unsigned, or says
//! something else than it should; so it is also a check of a whole installation.

mod mailbox;
mod outage;
mod paperwork;
mod stage;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use clap::Args;
use domain::merchant::{Interface, ReturnPolicy};
use domain::message_kind::MessageKind;
use domain::returns::RmaStatus;
use platform::{Clock, Timestamp};
use serde_json::{Value, json};

use crate::demo;
use crate::output::print;
use crate::settings::Settings;
use stage::{Stage, body};

/// Walk a return, an exchange, a shipment and an outage through the system
///
/// Needs the operator's and the merchant's clients, the addresses of all services and of the
/// sandbox merchant, as .run/env holds them. It points the merchant's endpoints at the sandbox and
/// sets what shoppers are offered, so take a merchant that is there for nothing else.
#[derive(Args)]
pub(crate) struct Arguments {
    /// How long each thing may take, an answer as well as a message
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = humantime::parse_duration)]
    patience: Duration,
    /// Set up the demo merchant first and take that one; its client is kept in this folder
    #[arg(long, value_name = "FOLDER")]
    demo: Option<PathBuf>,
}

/// What the tour is about, with names that no earlier tour used.
struct Story {
    order: String,
    now: Timestamp,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut settings = Settings::load()?;
    if let Some(folder) = arguments.demo {
        settings = demo::set_up(&folder, settings).await?;
    }
    let mut stage = Stage::set(&settings, arguments.patience).await?;
    let now = Clock::system().now();
    let story = Story { order: format!("TOUR-{}", now.format("%Y%m%d-%H%M%S%.3f")), now };
    print(&format!("{:<58} {}\n", "WHAT HAPPENS", "WHAT THE MERCHANT RECEIVES"))?;
    point_endpoints(&stage).await?;
    let rma = story.return_some(&mut stage).await?;
    story.travel(&mut stage, &rma).await?;
    paperwork::receive(&mut stage, &story.order, &rma).await?;
    story.refund(&mut stage, &rma).await?;
    paperwork::ship(&mut stage, &story.order).await?;
    outage::suffer(&mut stage, &story.order).await?;
    let longest = stage.mailbox.longest_wait.as_millis();
    Ok(print(&format!(
        "No message was waited for longer than {longest} ms. All were signed and in order.\n"
    ))?)
}

/// Every endpoint of the merchant is the sandbox, with a signing secret that it knows. Whatever was
/// tried with the merchant since the last tour, this one finds it open for what it does.
async fn point_endpoints(stage: &Stage) -> anyhow::Result<()> {
    let merchant = ["v1", "merchants", stage.merchant.as_str()];
    let ReturnPolicy { reasons, methods, .. } = ReturnPolicy::default();
    let change = json!({
        "base_url": stage.mailbox.sandbox(), "managed_receiving": true, "strict_refund_dates": false,
        "returns": { "gift_card": { "sku": "GIFT", "bonus_credit_amount_cents": 500 },
                     "reasons": reasons, "methods": methods },
    });
    stage.operator.patch(&merchant, body(change)).await?;
    let mut secrets = Vec::new();
    for interface in Interface::all() {
        let endpoint = [&merchant[..], &["endpoints", interface.name()]].concat();
        stage.operator.put(&endpoint, body(json!({}))).await?;
        let resume = [&endpoint[..], &["resume"]].concat();
        stage.operator.post(&resume, body(json!({}))).await?;
        // A question is not signed.
        if interface == Interface::Variants {
            continue;
        }
        let rotate = [&endpoint[..], &["rotate_secret"]].concat();
        let made = stage.operator.post(&rotate, body(json!({ "overlap_seconds": 0 }))).await?;
        secrets.extend(made.get("signing_secret").cloned());
    }
    stage.mailbox.tell("secrets", &json!({ "secrets": secrets })).await?;
    stage.mailbox.recover().await?;
    stage.say("an operator points the merchant's endpoints here", "signing secrets")
}

impl Story {
    /// The order, and a return of two of its units: one for money, one for another size.
    async fn return_some(&self, stage: &mut Stage) -> anyhow::Result<String> {
        self.publish(stage, self.now, json!([])).await?;
        stage.say(&format!("the shop publishes order {}", self.order), "-")?;
        let path = ["v1", "orders", &self.order, "returnable"];
        let shown = stage.until("the order is returnable", async || {
            stage.shop.returns.get(&path).await.map(Some)
        });
        let returnable = shown.await?;
        let units = returnable.get("units").and_then(Value::as_array).map_or(0, Vec::len);
        stage.say(&format!("the shopper is shown {units} units to return"), "-")?;

        let offer = stage.until("other sizes are offered", async || {
            stage.shop.exchange.get(&["v1", "variants", "BOOT"]).await.map(Some)
        });
        let offer = offer.await?;
        let variant = offer.pointer("/variants/0").cloned().unwrap_or_default();
        let sku = text(&variant, "/sku");
        stage.say("and other sizes to choose from", &format!("a question: {sku} is in stock"))?;

        let request = json!({
            "return_method": "mail-back",
            "units": [
                { "order_identifier": self.order, "order_line_item_identifier": "HAT", "unit": 1,
                  "return_reason": "CHANGED_MIND", "resolution": "refund" },
                { "order_identifier": self.order, "order_line_item_identifier": "BOOT", "unit": 1,
                  "return_reason": "TOO_SMALL", "resolution": "exchange", "variant": {
                    "sku": sku, "title": text(&variant, "/title"),
                    "unit_price_amount_cents": variant.get("unit_price_amount_cents") } },
            ],
        });
        let portal = stage.shop.returns.with("Idempotency-Key", &self.order);
        let rma = text(&portal.post(&["v1", "returns"], body(request)).await?, "/rma_identifier");
        let (message, _) = told(stage, "rma.created", &rma).await?;
        stage.say(&format!("the shopper returns a hat and a boot: {rma}"), &message)?;
        let order = self.order.clone();
        let exchange = stage
            .mailbox
            .received("exchange_order.created", move |it| text(it, "/original_order_id") == order)
            .await?;
        says(&exchange, "/items/0/sku", &sku)?;
        stage.say("the boot is exchanged", &format!("exchange order: {sku}"))?;
        let (message, seen) = told(stage, "rma.exchange_placed", &rma).await?;
        let new = text(&seen, "/items/1/exchange_order_identifier");
        stage.say(&format!("the shop calls the new order {new}"), &message)?;
        Ok(rma)
    }

    async fn travel(&self, stage: &mut Stage, rma: &str) -> anyhow::Result<()> {
        let number = format!("1Z{}", self.now.timestamp_millis());
        let steps = [
            ("label", "rma.tracking_updated", "PRE_TRANSIT", "the carrier makes a label"),
            ("accepted", "rma.dropped_off", "ACCEPTED", "the shopper drops the parcel off"),
            ("in_transit", "rma.in_transit", "TRANSIT", "the carrier scans the parcel"),
        ];
        for (event, service_event, status, what) in steps {
            let report = json!({
                "event_identifier": format!("{number}-{event}"), "event": event,
                "rma_identifier": rma, "tracking_number": number,
            });
            stage.staff.returns.post(&["v1", "carrier_events"], body(report)).await?;
            let (message, seen) = told(stage, service_event, rma).await?;
            says(&seen, "/items/0/package_tracking_status", status)?;
            stage.say(what, &format!("{message}, {status}"))?;
        }
        Ok(())
    }

    async fn refund(&self, stage: &mut Stage, rma: &str) -> anyhow::Result<()> {
        let line = |number: u8, line: &str| {
            json!({ "identifier": format!("{}-RL{number}", self.order), "quantity": 1,
                    "order_item_identifier": line })
        };
        let refund = json!([{
            "identifier": format!("{}-R1", self.order), "total_refund_amount_cents": 4600,
            "refund_line_items": [line(1, "HAT"), line(2, "BOOT")],
            "created_at": self.now, "rma_identifier": rma,
        }]);
        self.publish(stage, self.now + Duration::from_secs(1), refund).await?;
        let (message, seen) = told(stage, "rma.refunded", rma).await?;
        says(&seen, "/status", RmaStatus::Refunded.as_str())?;
        stage.say(
            "the shop publishes the refund",
            &format!("{message}, {}", RmaStatus::Refunded.as_str()),
        )
    }

    async fn publish(&self, stage: &Stage, at: Timestamp, refunds: Value) -> anyhow::Result<()> {
        let line = |identifier: &str, title: &str, quantity: i64, price: i64, tax: i64| {
            json!({
                "identifier": identifier, "sku": format!("{identifier}-1"), "title": title,
                "quantity": quantity, "quantity_shipped": quantity, "quantity_canceled": 0,
                "shipped_date": self.now, "variant_identifier": identifier,
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
            "created_at": self.now, "updated_at": at, "refunds": refunds,
            "items": [line("HAT", "Felt hat", 1, 1500, 100), line("BOOT", "Walking boot", 2, 2500, 500)],
            "customer": { "identifier": "ada", "email": "ada@shopper.example" },
            "shipping_address": address, "billing_address": address,
            "transactions": [], "discounts": [],
        });
        let message = json!({ "returns_portal_order": { "orders": [order] } });
        let shop = stage.shop.orders.with("Api-Version", "3");
        shop.post(&["returns_portal_orders"], body(message)).await?;
        Ok(())
    }
}

/// The message about a return that the merchant received, in a few words and whole.
async fn told(stage: &mut Stage, event: &str, rma: &str) -> anyhow::Result<(String, Value)> {
    let seen = stage.mailbox.received(event, |it| text(it, "/rma_identifier") == rma).await?;
    Ok((format!("{}: {event}", MessageKind::Rma.name().to_uppercase()), seen))
}

/// Fails unless a message says this at a place.
fn says(message: &Value, place: &str, wanted: &str) -> anyhow::Result<()> {
    let said = text(message, place);
    if said != wanted {
        bail!("the merchant was told {said:?} instead of {wanted:?} at {place} of {message}");
    }
    Ok(())
}

/// The text at a place, or nothing.
fn text(value: &Value, place: &str) -> String {
    value.pointer(place).and_then(Value::as_str).unwrap_or_default().to_owned()
}
