//! The returns portal of the demo merchant: its appearance, and orders that can be returned in it at once.

mod appearance;
mod orders;

use anyhow::Context as _;
use platform::Timestamp;
use serde_json::{Value, json};

use self::orders::{Buyer, Catalogue, Line};
use super::context::{DemoContext, print_step, text_at};

/// The variables that lead to the orders in the portal.
pub(super) type Variables = Vec<(&'static str, String)>;

const MIA: Buyer = Buyer { identifier: "mia", name: "Mia Moreau", zip_code: "12207" };
const NOOR: Buyer = Buyer { identifier: "noor", name: "Noor Patel", zip_code: "97401" };

/// Opens the portal after the other steps, because it changes the costs of returns.
pub(super) async fn open(context: &DemoContext, now: Timestamp) -> anyhow::Result<Variables> {
    let catalogue = Catalogue::new(context.inbox.catalogue().await?);
    let merchant = ["v1", "merchants", context.merchant.as_str()];
    let image_host = catalogue.image_host().context("the sandbox has no pictures")?;
    context.auth.patch(&merchant, &appearance::settings(&image_host)).await?;

    let number = now.timestamp();
    let [order, second, gift] = ["", "-2", "-G"].map(|end| format!("S-{number}{end}"));
    publish(context, &catalogue, (&order, now), (&MIA, orders::FIRST)).await?;
    publish(context, &catalogue, (&second, now), (&MIA, orders::SECOND)).await?;
    publish(context, &catalogue, (&gift, now), (&NOOR, orders::GIFT)).await?;
    let own = deep_link(context, &order, false).await?;
    deep_link(context, &second, false).await?;
    let given = deep_link(context, &gift, true).await?;
    let email = MIA.email();
    print_step(&format!("{email} can return order {order}"), &text_at(&own, "/url"))?;
    Ok(vec![
        ("PORTAL_ORDER", order),
        ("PORTAL_SECOND_ORDER", second),
        ("PORTAL_EMAIL", email),
        ("PORTAL_ORDER_URL", text_at(&own, "/url")),
        ("PORTAL_GIFT_ORDER", gift),
        ("PORTAL_GIFT_CODE", text_at(&given, "/gift_code")),
        ("PORTAL_GIFT_URL", text_at(&given, "/url")),
    ])
}

async fn publish(
    context: &DemoContext,
    catalogue: &Catalogue,
    (identifier, now): (&str, Timestamp),
    (buyer, lines): (&Buyer, &[Line]),
) -> anyhow::Result<()> {
    let order = catalogue.order(identifier, buyer, lines, now)?;
    let message = json!({ "returns_portal_order": { "orders": [order] } });
    let order_intake = context.shop.orders.with_header("Api-Version", "3");
    order_intake.post(&["returns_portal_orders"], &message).await?;
    Ok(())
}

/// A link to an order. It exists when the order has reached the RMA engine.
async fn deep_link(context: &DemoContext, order: &str, is_gift: bool) -> anyhow::Result<Value> {
    let body = json!({ "order_identifier": order, "is_gift": is_gift });
    let link = context.poll("the portal has the order", async || {
        context.shop.returns.post(&["v1", "deep_links"], &body).await.map(Some)
    });
    link.await
}
