//! Dead letters: announced at once, and purged after a replay.

use domain::kind::Kind;
use messaging::{Exchange, Message};
use reqwest::Method;
use serde_json::json;
use testkit::eventually;
use uuid::Uuid;

use crate::desk::Desk;
use crate::stage::{SOON, Stage, message, publish};

#[tokio::test(flavor = "multi_thread")]
async fn the_event_of_a_dead_delivery_does_not_wait_for_the_relays_poll() {
    let stage = Stage::new(&[("DELIVERY__RETRIES", "0"), ("BROKER__RELAY_POLL", "1h")]).await;
    stage.behave(json!([{"do": "answer", "status": 422, "times": "always"}])).await;
    // The wake-up precedes the commit. Should the relay miss one commit, the next one wakes it again.
    eventually("an event is published", SOON, async || {
        stage.append(&[message(None, "rma.created", 1)]).await;
        stage.settled(SOON).await;
        (!stage.namespace.peek("operators.delivery.dead.v1").await.is_empty()).then_some(())
    })
    .await;
    stage.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_reads_the_whole_dead_letter_queue() {
    const OUTDATED: usize = 450;
    let desk = Desk::new(&[]).await;
    let (stage, dead) = (&desk.stage, desk.kill(message(None, "rma.created", 1)).await);
    publish(stage, &vec![first_dead_letter(stage, dead); OUTDATED]).await;
    // A message of another program stays. The purge returns it to the queue when it ends.
    stage.namespace.publish_raw(Kind::Rma.dead_letter_queue(), "of another program").await;
    let replay = format!("/v1/deliveries/{dead}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    eventually("only the other program's message is left", SOON, async || {
        let letters = stage.namespace.peek(Kind::Rma.dead_letter_queue()).await;
        (letters.len() == 1 && letters[0]["payload"] == "of another program").then_some(())
    })
    .await;
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_keeps_the_dead_letter_of_the_last_replay() {
    let desk = Desk::new(&[]).await;
    let (stage, first) = (&desk.stage, desk.kill(message(None, "first", 1)).await);
    stage.behave(json!([{"do": "answer", "status": 500, "times": 6}])).await;
    let replay = format!("/v1/deliveries/{first}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    let second = desk.kill(message(None, "second", 2)).await;

    publish(stage, &[first_dead_letter(stage, first)]).await;
    let replay = format!("/v1/deliveries/{second}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    only_dead_letter_of_first_replay(stage, first).await;
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivered_message_whose_replay_failed_keeps_its_dead_letter() {
    let desk = Desk::new(&[]).await;
    let (stage, ids) = (&desk.stage, desk.stage.append(&[message(None, "first", 1)]).await);
    stage.settled(SOON).await;
    stage.behave(json!([{"do": "answer", "status": 500, "times": 6}])).await;
    let replay = format!("/v1/deliveries/{}/replay", ids[0]);
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    let second = desk.kill(message(None, "second", 2)).await;
    let replay = format!("/v1/deliveries/{second}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    only_dead_letter_of_first_replay(stage, ids[0]).await;
    desk.leave().await;
}

/// A dead letter that a process left when it died between a replay and the purge.
fn first_dead_letter(stage: &Stage, id: Uuid) -> Message {
    Message {
        exchange: Exchange(String::new()),
        routing_key: format!("{}.{}", stage.namespace.name, Kind::Rma.dead_letter_queue()),
        id: id.to_string(),
        content_type: "application/json",
        headers: vec![("delivery-id", id.to_string()), ("replay-number", "0".to_owned())],
        body: b"{}".to_vec(),
    }
}

async fn only_dead_letter_of_first_replay(stage: &Stage, id: Uuid) {
    let expected = [(json!(id.to_string()), json!("1"))];
    eventually("only the dead letter of the replay is left", SOON, async || {
        let letters = stage.namespace.peek(Kind::Rma.dead_letter_queue()).await;
        let left: Vec<_> = letters
            .iter()
            .map(|letter| &letter["properties"]["headers"])
            .map(|headers| (headers["delivery-id"].clone(), headers["replay-number"].clone()))
            .collect();
        (left == expected).then_some(())
    })
    .await;
}
