//! The merchant is down for longer than we try, and comes back.

use anyhow::{Context as _, bail};
use domain::message_kind::MessageKind;
use serde_json::{Value, json};

use super::stage::{Stage, body};
use super::{text, told};

pub(super) async fn suffer(stage: &mut Stage, order: &str) -> anyhow::Result<()> {
    let down = json!({ "path": MessageKind::Rma.default_path(),
        "steps": [{ "do": "answer", "status": 503, "times": "always" }] });
    stage.mailbox.tell("behaviour", &down).await?;
    let request = json!({
        "return_method": "mail-back",
        "units": [{ "order_identifier": order, "order_line_item_identifier": "BOOT", "unit": 2,
                    "return_reason": "OTHER", "resolution": "refund" }],
    });
    let created = stage.shop.returns.post(&["v1", "returns"], body(request)).await?;
    let rma = text(&created, "/rma_identifier");
    stage.say(&format!("the shop is down while {rma} is made"), "503, six times")?;

    let lane = format!("rma:{rma}");
    let query = [("state", "dead".to_owned()), ("lane", lane)];
    let path = ["v1", "deliveries"];
    let dead = stage.until("the message is given up", async || {
        let found = stage.staff.returns.search(&path, &query).await?;
        Ok(found.pointer("/deliveries/0").cloned())
    });
    let id = text(&dead.await?, "/id");
    show_letter(stage, &id).await?;

    stage.mailbox.recover().await?;
    stage.staff.returns.order(&["v1", "deliveries", &id, "replay"], &[]).await?;
    let (message, _) = told(stage, "rma.created", &rma).await?;
    stage.say("the shop is back, an operator replays the message", &message)
}

/// The letter as the console shows it: body and explanation.
async fn show_letter(stage: &Stage, id: &str) -> anyhow::Result<()> {
    let queue = stage.queue(MessageKind::Rma.dead_letter_queue());
    let found = stage.until("the letter is in the queue", async || {
        let Some(letters) = stage.letters(&queue).await? else { return Ok(Some(Value::Null)) };
        let is_it = |letter: &Value| letter.to_string().contains(id);
        Ok(letters.into_iter().find(is_it))
    });
    let letter = found.await?;
    if letter.is_null() {
        return stage.say("the message lies in a dead-letter queue", "-");
    }
    let headers = letter.pointer("/properties/headers").context("a letter without headers")?;
    if headers.get("attempts").and_then(Value::as_str) != Some("6") {
        bail!("a letter after another number of attempts than six: {headers}");
    }
    stage.say(&format!("RabbitMQ shows it in {queue}, six attempts"), "-")
}
