//! Sending again, once or by the thousand, and what becomes of the letters.

use delivery::NewMessage;
use diesel_async::{AsyncConnection as _, SimpleAsyncConnection as _};
use domain::message_kind::MessageKind;
use messaging::{Exchange, Message};
use platform::Clock;
use reqwest::Method;
use serde_json::json;
use testkit::eventually;
use uuid::Uuid;

use crate::desk::Desk;
use crate::stage::{SOON, Stage, execute, introduce, merchant, message, publish};

#[tokio::test(flavor = "multi_thread")]
async fn an_overtaken_message_is_replayed_with_force_only() {
    let desk = Desk::new(&[]).await;
    let dead = desk.kill(message(Some("rma:1"), "rma.created", 1)).await;
    desk.stage.append(&[message(Some("rma:1"), "rma.refunded", 2)]).await;
    desk.stage.settled(SOON).await;
    let path = format!("/v1/deliveries/{dead}/replay");
    let (status, answer) = desk.operator(Method::POST, &path, &json!({})).await;
    assert_eq!(status, 409, "{answer}");
    let path = format!("{path}?force=true");
    assert_eq!(desk.operator(Method::POST, &path, &json!({})).await.0, 202);
    desk.stage.settled(SOON).await;
    assert_eq!(desk.stage.arrivals().await.last().unwrap().sequence, 1);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_was_tried_in_vain_waits_for_the_replay() {
    let desk = Desk::new(&[]).await;
    let (stage, dead) = (&desk.stage, desk.kill(message(Some("rma:1"), "rma.created", 1)).await);
    let mut conn = stage.pool.get().await.unwrap();
    let now = Clock::system().now();
    // Written and tried in one go, before the dispatcher can see it.
    conn.transaction(async |conn| {
        let second = [message(Some("rma:1"), "rma.refunded", 2)];
        stage.replica.deliveries.append(conn, now, &second).await?;
        let tried = "UPDATE deliveries SET attempts = 1, due_at = due_at + INTERVAL '1 hour'";
        Ok::<_, platform::database::DatabaseError>(conn.batch_execute(tried).await?)
    })
    .await
    .unwrap();
    drop(conn);
    stage.behave(json!([{"do": "answer", "status": 500, "times": 1}])).await;
    let path = format!("/v1/deliveries/{dead}/replay");
    let (status, answer) = desk.operator(Method::POST, &path, &json!({})).await;
    assert_eq!(status, 202, "{answer}");
    execute(&stage.pool, "UPDATE deliveries SET due_at = now() WHERE sequence = 2").await;
    stage.settled(SOON).await;
    let arrivals = stage.arrivals().await;
    let accepted = arrivals.iter().filter(|arrival| arrival.answer == "200");
    assert_eq!(accepted.map(|arrival| arrival.sequence).collect::<Vec<_>>(), [1, 2]);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_by_filter_counts_first_and_then_sends_everything() {
    let desk = Desk::new(&[("DELIVERY__RETRIES", "0")]).await;
    desk.stage.behave(json!([{"do": "answer", "status": 422, "times": "always"}])).await;
    desk.stage.append(&(0..20).map(|n| message(None, "rma.created", n)).collect::<Vec<_>>()).await;
    // The other replica retries; what it took is dead after six requests.
    desk.stage.settled(SOON).await;
    desk.stage.ask(Method::DELETE, "/behaviour", &json!({})).await;
    let filter = json!({"merchant": "acme", "status": 422});
    let dry = json!({"filter": filter, "dry_run": true});
    let (status, answer) = desk.operator(Method::POST, "/v1/replays", &dry).await;
    assert_eq!((status, &answer["matches"]), (200, &json!(20)));
    let real = json!({"filter": filter, "per_second": 15});
    let (status, replay) = desk.operator(Method::POST, "/v1/replays", &real).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the replay is finished", SOON, async || {
        let replay = desk.get(&path).await;
        (!replay["finished_at"].is_null()).then_some(replay)
    })
    .await;
    assert_eq!(desk.get(&path).await["replayed"], 20);
    desk.stage.settled(SOON).await;
    let delivered = desk.get("/v1/deliveries?state=delivered").await;
    assert_eq!(delivered["deliveries"].as_array().unwrap().len(), 20);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_keeps_its_rate_however_many_processes_look_at_it() {
    let desk = Desk::new(&[("DELIVERY__RETRIES", "0")]).await;
    let stage = &desk.stage;
    stage.behave(json!([{"do": "answer", "status": 422, "times": "always"}])).await;
    stage.append(&(0..20).map(|n| message(None, "rma.created", n)).collect::<Vec<_>>()).await;
    stage.settled(SOON).await;
    // Where nothing is sent, a message stays due since it was replayed.
    let mut paused = merchant("acme", 2, &stage.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    introduce(&stage.pool, &paused).await;
    stage.knows("acme", 2).await;
    let wanted = json!({"filter": {"status": 422}, "per_second": 5});
    let (status, replay) = desk.operator(Method::POST, "/v1/replays", &wanted).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the replay is finished", SOON, async || {
        (!desk.get(&path).await["finished_at"].is_null()).then_some(())
    })
    .await;
    assert_eq!(desk.get(&path).await["replayed"], 20);
    let most =
        "SELECT max(n) AS n FROM (SELECT count(*) AS n FROM deliveries GROUP BY due_at) AS at";
    assert_eq!(stage.number(most).await, 5);
    let hasty = "SELECT count(*) AS n FROM ( \
                 SELECT due_at - lag(due_at) OVER (ORDER BY due_at) AS rest \
                 FROM (SELECT DISTINCT due_at FROM deliveries) AS turns) AS rests \
                 WHERE rest < INTERVAL '1 second'";
    assert_eq!(stage.number(hasty).await, 0);
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_fails_holds_up_no_other() {
    let desk = Desk::new(&[]).await;
    desk.kill(message(None, "rma.created", 1)).await;
    execute(
        &desk.stage.pool,
        "INSERT INTO delivery_replays \
         (id, requested_by, filter, force, per_second, last_seen, created_at, advanced_at) \
         VALUES ('00000000-0000-7000-8000-000000000001', 'somebody', '{\"kind\": 5}', false, 50, \
         '00000000-0000-0000-0000-000000000000', now(), now())",
    )
    .await;
    let wanted = json!({"filter": {"merchant": "acme"}});
    let (status, replay) = desk.operator(Method::POST, "/v1/replays", &wanted).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the other replay is finished", SOON, async || {
        (!desk.get(&path).await["finished_at"].is_null()).then_some(())
    })
    .await;
    desk.stage.settled(SOON).await;
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_leftovers_go_at_once_however_many_there_are() {
    /// More than two places at the queue can hold.
    const LEFTOVERS: usize = 450;
    let desk = Desk::new(&[]).await;
    let (stage, dead) = (&desk.stage, desk.kill(message(None, "rma.created", 1)).await);
    let leftovers = vec![leftover(stage, dead); LEFTOVERS];
    publish(stage, &leftovers).await;
    // Left alone, and seen again when everything was looked at.
    stage.namespace.publish_raw(MessageKind::Rma.dead_letter_queue(), "somebody else's").await;
    let replay = format!("/v1/deliveries/{dead}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    eventually("no leftover is left", SOON, async || {
        let letters = stage.namespace.peek(MessageKind::Rma.dead_letter_queue()).await;
        (letters.len() == 1 && letters[0]["payload"] == "somebody else's").then_some(())
    })
    .await;
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_lane_are_replayed_in_their_order() {
    let desk = Desk::new(&[]).await;
    let stage = &desk.stage;
    let batch: Vec<_> = (0..60).map(|n| message(Some("asn:1"), "receipt", n)).collect();
    let ids = dead(stage, &batch).await;
    let wanted = json!({"filter": {"ordering_key": "asn:1"}, "per_second": 50});
    let (status, replay) = desk.operator(Method::POST, "/v1/replays", &wanted).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    let finished = eventually("the replay is finished", SOON, async || {
        let replay = desk.get(&path).await;
        (!replay["finished_at"].is_null()).then_some(replay)
    })
    .await;
    assert_eq!((&finished["replayed"], &finished["skipped"]), (&json!(60), &json!(0)));
    stage.settled(SOON).await;
    let arrived: Vec<_> = stage.arrivals().await.into_iter().map(|arrival| arrival.id).collect();
    assert_eq!(arrived, ids.iter().map(ToString::to_string).collect::<Vec<_>>());
    desk.leave().await;
}

/// Writes messages that are dead as soon as they are there.
async fn dead(stage: &Stage, batch: &[NewMessage]) -> Vec<Uuid> {
    let mut conn = stage.pool.get().await.unwrap();
    let now = Clock::system().now();
    conn.transaction(async |conn| {
        let ids = stage.replica.deliveries.append(conn, now, batch).await?;
        conn.batch_execute(
            "INSERT INTO delivery_attempts SELECT id, 0, 6, due_at, 1, 'rejected', 422, '', '', \
             'dead' FROM deliveries; DELETE FROM deliveries",
        )
        .await?;
        Ok::<_, platform::database::DatabaseError>(ids)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_goes_on_in_the_next_process() {
    let stage = Stage::new(&[]).await;
    let batch: Vec<_> = (0..30).map(|n| message(None, "rma.created", n)).collect();
    let ids = dead(&stage, &batch).await;
    execute(
        &stage.pool,
        "INSERT INTO delivery_replays \
         (id, requested_by, filter, force, per_second, last_seen, created_at, advanced_at) \
         VALUES ('00000000-0000-7000-8000-000000000001', 'somebody', '{}', false, 5, \
         '00000000-0000-0000-0000-000000000000', now(), now())",
    )
    .await;
    eventually("it has begun", SOON, async || {
        (stage.number("SELECT replayed::int8 AS n FROM delivery_replays").await > 0).then_some(())
    })
    .await;
    assert!(stage.replica.process.tasks.drain(SOON).await, "tasks did not stop");
    let unfinished = "SELECT count(*) AS n FROM delivery_replays WHERE finished_at IS NULL";
    assert_eq!(stage.number(unfinished).await, 1);
    let next = stage.another().await;
    eventually("it is finished", SOON, async || {
        (stage.number(unfinished).await == 0).then_some(())
    })
    .await;
    stage.settled(SOON).await;
    let mut arrived: Vec<_> = stage.arrivals().await.into_iter().map(|it| it.id).collect();
    arrived.sort_unstable();
    assert_eq!(arrived, ids.iter().map(ToString::to_string).collect::<Vec<_>>());
    next.leave().await;
}

/// The letter of a message's first round, as a process left it that died before it tidied up.
fn leftover(stage: &Stage, id: Uuid) -> Message {
    Message {
        exchange: Exchange(String::new()),
        routing_key: format!("{}.{}", stage.namespace.name, MessageKind::Rma.dead_letter_queue()),
        id: id.to_string(),
        content_type: "application/json",
        headers: vec![("delivery-id", id.to_string()), ("round", "0".to_owned())],
        body: b"{}".to_vec(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_letter_of_a_later_round_outlives_that_of_an_earlier_one() {
    let desk = Desk::new(&[]).await;
    let (stage, first) = (&desk.stage, desk.kill(message(None, "first", 1)).await);
    stage.behave(json!([{"do": "answer", "status": 500, "times": 6}])).await;
    let replay = format!("/v1/deliveries/{first}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    let second = desk.kill(message(None, "second", 2)).await;

    publish(stage, &[leftover(stage, first)]).await;
    let replay = format!("/v1/deliveries/{second}/replay");
    assert_eq!(desk.operator(Method::POST, &replay, &json!({})).await.0, 202);
    stage.settled(SOON).await;
    only_letter_of_round_1(stage, first).await;
    desk.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_delivered_and_died_of_a_replay_keeps_its_letter() {
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
    only_letter_of_round_1(stage, ids[0]).await;
    desk.leave().await;
}

/// Waits until nothing is left in the dead-letter queue but the letter of a message's second round.
async fn only_letter_of_round_1(stage: &Stage, id: Uuid) {
    let expected = [(json!(id.to_string()), json!("1"))];
    eventually("only the letter of the later round is left", SOON, async || {
        let letters = stage.namespace.peek(MessageKind::Rma.dead_letter_queue()).await;
        let left: Vec<_> = letters
            .iter()
            .map(|letter| &letter["properties"]["headers"])
            .map(|headers| (headers["delivery-id"].clone(), headers["round"].clone()))
            .collect();
        (left == expected).then_some(())
    })
    .await;
}
