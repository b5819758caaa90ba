//! Outages of the merchant's endpoint that outlast all attempts. One message is replayed; another one stays
//! a dead letter, to be found and replayed in the console.

use anyhow::{Context as _, bail};
use domain::message_kind::MessageKind;
use serde_json::{Value, json};

use super::context::{DemoContext, print_step, text_at};

pub(super) async fn run(context: &mut DemoContext, order: &str) -> anyhow::Result<()> {
    take_shop_down(context).await?;
    let request = json!({
        "return_method": "mail-back",
        "units": [{ "order_identifier": order, "order_line_item_identifier": "BOOT", "unit": 2,
                    "return_reason": "OTHER", "resolution": "refund" }],
    });
    let created = context.shop.returns.post(&["v1", "returns"], &request).await?;
    let rma = text_at(&created, "/rma_identifier");
    print_step(&format!("the shop is down when {rma} is created"), "503, six times")?;
    let id = dead_delivery(context, &rma).await?;
    check_dead_letter(context, &id).await?;

    context.inbox.reset_behaviour().await?;
    context.operator.returns.trigger(&["v1", "deliveries", &id, "replay"], &[]).await?;
    let (message, _) = context.rma_message("rma.created", &rma).await?;
    print_step("the shop is up again and an operator replays the message", &message)?;
    leave_dead_letter(context, &rma).await
}

async fn leave_dead_letter(context: &mut DemoContext, rma: &str) -> anyhow::Result<()> {
    take_shop_down(context).await?;
    context.shop.returns.post(&["v1", "returns", rma, "cancel"], &json!({})).await?;
    print_step(&format!("the shop is down when {rma} is canceled"), "503, six times")?;
    dead_delivery(context, rma).await?;
    context.inbox.reset_behaviour().await?;
    print_step("the shop is up again; this message waits for you in the console", "-")
}

/// Lets the endpoint of RMA messages fail. The label provider makes labels later, so that no message follows that of the
/// return.
async fn take_shop_down(context: &DemoContext) -> anyhow::Result<()> {
    let later = json!({ "path": MessageKind::LabelRequest.default_path(),
        "steps": [{ "do": "respond", "status": 202, "times": "always" }] });
    context.inbox.configure("behaviour", &later).await?;
    let failing = json!({ "path": MessageKind::Rma.default_path(),
        "steps": [{ "do": "respond", "status": 503, "times": "always" }] });
    context.inbox.configure("behaviour", &failing).await
}

/// Waits until the delivery of a return's message is dead. Returns its id.
async fn dead_delivery(context: &DemoContext, rma: &str) -> anyhow::Result<String> {
    let query = [("state", "dead".to_owned()), ("ordering_key", format!("rma:{rma}"))];
    let dead = context.poll("the message becomes a dead letter", async || {
        let page = context.operator.returns.search(&["v1", "deliveries"], &query).await?;
        Ok(page.pointer("/deliveries/0").cloned())
    });
    Ok(text_at(&dead.await?, "/id"))
}

/// Finds the dead letter in its queue and checks the number of attempts.
async fn check_dead_letter(context: &DemoContext, id: &str) -> anyhow::Result<()> {
    let queue = MessageKind::Rma.dead_letter_queue();
    let Some(console) = &context.console else {
        return print_step("the message is in a dead-letter queue", "-");
    };
    let message = context.poll("the dead letter is in its queue", async || {
        let messages = console.messages(queue).await?;
        Ok(messages.into_iter().find(|message| message.to_string().contains(id)))
    });
    let message = message.await?;
    let headers =
        message.pointer("/properties/headers").context("the dead letter has no headers")?;
    if headers.get("attempts").and_then(Value::as_str) != Some("6") {
        bail!("the dead letter does not have six attempts: {headers}");
    }
    let queue = console.queue_name(queue);
    print_step(&format!("RabbitMQ has it in {queue} after six attempts"), "-")
}
