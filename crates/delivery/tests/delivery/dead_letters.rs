//! Dead letters: announced at once, and purged after a replay or an erasure.

use delivery::Deliveries;
use domain::message_kind::MessageKind;
use messaging::{Exchange, Message};
use reqwest::Method;
use serde_json::json;
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::{TIMEOUT, TestApp, message};

#[tokio::test(flavor = "multi_thread")]
async fn the_event_of_a_dead_delivery_does_not_wait_for_the_relays_poll() {
    let app =
        TestApp::start(&[("DELIVERY__RETRIES", "0"), ("BROKER__RELAY_POLL_INTERVAL", "1h")]).await;
    app.behave(json!([{"do": "respond", "status": 422, "times": "always"}])).await;
    // The wake-up precedes the commit. Should the relay miss one commit, the next one wakes it again.
    eventually("an event is published", TIMEOUT, async || {
        app.append(&[message(None, "rma.created", 1)]).await;
        app.wait_until_settled(TIMEOUT).await;
        (!app.namespace.peek("rma-engine.delivery.dead.v1").await.is_empty()).then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_reads_the_whole_dead_letter_queue() {
    const OUTDATED: usize = 450;
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_dead(message(None, "rma.created", 1)).await;
    app.publish(&vec![first_dead_letter(&app, dead); OUTDATED]).await;
    // A message of another program stays. The purge returns it to the queue when it ends.
    app.namespace.publish_raw(MessageKind::Rma.dead_letter_queue(), "of another program").await;
    let replay = format!("/v1/deliveries/{dead}/replay");
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    eventually("only the other program's message is left", TIMEOUT, async || {
        let letters = app.namespace.peek(MessageKind::Rma.dead_letter_queue()).await;
        (letters.len() == 1 && letters[0]["payload"] == "of another program").then_some(())
    })
    .await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_reaches_a_dead_letter_behind_hundreds_that_stay() {
    const KEPT: usize = 450;
    let queue = MessageKind::Rma.dead_letter_queue();
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_dead(message(None, "rma.created", 1)).await;
    app.namespace.purge(queue).await;
    // A restored database does not know these messages yet.
    let mut letters: Vec<_> = (0..KEPT).map(|_| first_dead_letter(&app, Uuid::now_v7())).collect();
    let mut kept: Vec<_> = letters.iter().map(|letter| letter.id.clone()).collect();
    letters.push(first_dead_letter(&app, dead));
    app.publish(&letters).await;
    wait_for_message_count(&app, KEPT + 1).await;
    let replay = format!("/v1/deliveries/{dead}/replay");
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    wait_for_message_count(&app, KEPT).await;

    let left = eventually("the dead letters are back in the queue", TIMEOUT, async || {
        Some(app.namespace.peek(queue).await).filter(|letters| letters.len() == KEPT)
    })
    .await;
    let header = |letter: &serde_json::Value, name: &str| {
        letter["properties"]["headers"][name].as_str().unwrap().to_owned()
    };
    let mut ids: Vec<_> = left.iter().map(|letter| header(letter, "delivery-id")).collect();
    ids.sort_unstable();
    kept.sort_unstable();
    assert_eq!(ids, kept);
    assert!(left.iter().all(|letter| header(letter, "replay-number") == "0"));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_keeps_the_dead_letter_of_the_last_replay() {
    let app = TestApp::with_api(&[]).await;
    let first = app.append_dead(message(None, "first", 1)).await;
    app.behave(json!([{"do": "respond", "status": 500, "times": 6}])).await;
    let replay = format!("/v1/deliveries/{first}/replay");
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    let second = app.append_dead(message(None, "second", 2)).await;

    app.publish(&[first_dead_letter(&app, first)]).await;
    let replay = format!("/v1/deliveries/{second}/replay");
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    only_dead_letter_of_first_replay(&app, first).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivered_message_whose_replay_failed_keeps_its_dead_letter() {
    let app = TestApp::with_api(&[]).await;
    let ids = app.append(&[message(None, "first", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    app.behave(json!([{"do": "respond", "status": 500, "times": 6}])).await;
    let replay = format!("/v1/deliveries/{}/replay", ids[0]);
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    let second = app.append_dead(message(None, "second", 2)).await;
    let replay = format!("/v1/deliveries/{second}/replay");
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    only_dead_letter_of_first_replay(&app, ids[0]).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_removes_the_dead_letter_of_an_erased_message() {
    let app = TestApp::with_api(&[]).await;
    let mut planted = message(Some("rma:1"), "rma.created", 1);
    planted.body = json!({ "note": "PLANTED" }).to_string().into();
    let erased = app.append_dead(planted).await;
    let kept = app.append_dead(message(Some("rma:2"), "rma.created", 2)).await;
    let (merchant, keys) = ("acme".parse().unwrap(), ["rma:1".to_owned()]);
    let mut conn = app.pool.get().await.unwrap();
    let messages = delivery::ErasedMessages { ordering_keys: &keys, before: None };
    let erase = domain::erasure::erase;
    let changed = Deliveries::erase(&mut conn, &merchant, messages, |_| true, erase).await;
    assert_eq!(changed.unwrap(), 1);
    drop(conn);
    // A replay is followed by a purge; without one the purge comes within an hour.
    let replayed = app.append_dead(message(None, "rma.created", 3)).await;
    let replay = format!("/v1/deliveries/{replayed}/replay");
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    eventually("only the dead letter of the other message is left", TIMEOUT, async || {
        let letters = app.namespace.peek(MessageKind::Rma.dead_letter_queue()).await;
        let ids = letters.iter().map(|it| it["properties"]["headers"]["delivery-id"].as_str());
        ids.eq([Some(kept.to_string().as_str())]).then_some(())
    })
    .await;
    let replay = format!("/v1/deliveries/{erased}/replay");
    assert_eq!(app.operator_request(Method::POST, &replay, &json!({})).await.0, 202);
    app.stop().await;
}

/// A dead letter that a process left when it died between a replay and the purge.
fn first_dead_letter(app: &TestApp, id: Uuid) -> Message {
    Message {
        exchange: Exchange(String::new()),
        routing_key: format!("{}.{}", app.namespace.name, MessageKind::Rma.dead_letter_queue()),
        id: id.to_string(),
        content_type: "application/json",
        headers: vec![("delivery-id", id.to_string()), ("replay-number", "0".to_owned())],
        body: b"{}".to_vec(),
    }
}

/// Waits for a number of dead letters, without taking them from a purge.
async fn wait_for_message_count(app: &TestApp, expected: usize) {
    eventually("a number of dead letters", TIMEOUT, async || {
        let count = app.namespace.message_count(MessageKind::Rma.dead_letter_queue()).await;
        (usize::try_from(count) == Ok(expected)).then_some(())
    })
    .await;
}

async fn only_dead_letter_of_first_replay(app: &TestApp, id: Uuid) {
    let expected = [(json!(id.to_string()), json!("1"))];
    eventually("only the dead letter of the replay is left", TIMEOUT, async || {
        let letters = app.namespace.peek(MessageKind::Rma.dead_letter_queue()).await;
        let left: Vec<_> = letters
            .iter()
            .map(|letter| &letter["properties"]["headers"])
            .map(|headers| (headers["delivery-id"].clone(), headers["replay-number"].clone()))
            .collect();
        (left == expected).then_some(())
    })
    .await;
}
