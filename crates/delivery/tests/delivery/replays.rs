//! Replays of one delivery, and of all that match a filter.

use diesel_async::SimpleAsyncConnection as _;
use platform::Clock;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;

use crate::test_app::{TIMEOUT, TestApp, execute, merchant, message, store_merchant, token};

#[tokio::test(flavor = "multi_thread")]
async fn a_superseded_delivery_is_replayed_only_with_force() {
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_dead(message(Some("rma:1"), "rma.created", 1)).await;
    app.append(&[message(Some("rma:1"), "rma.refunded", 2)]).await;
    app.wait_until_settled(TIMEOUT).await;
    let path = format!("/v1/deliveries/{dead}/replay");
    let (status, response) = app.operator_request(Method::POST, &path, &json!({})).await;
    assert_eq!(status, 409, "{response}");
    let path = format!("{path}?force=true");
    assert_eq!(app.operator_request(Method::POST, &path, &json!({})).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.last().unwrap().sequence, 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_was_replayed_since_the_caller_read_it_is_not_sent_again() {
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_dead(message(None, "rma.created", 1)).await;
    let replay = async |number: i32| {
        let path = format!("/v1/deliveries/{dead}/replay?replay_number={number}");
        app.operator_request(Method::POST, &path, &json!({})).await
    };
    let read = app.get(&format!("/v1/deliveries/{dead}")).await;
    assert_eq!(read["attempts"].as_array().unwrap().last().unwrap()["replay_number"], 0);
    assert_eq!(replay(0).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    let sent = app.received().await.len();
    // A double click, and another person with an old page.
    let (status, response) = replay(0).await;
    assert_eq!(status, 409, "{response}");
    let message = response["message"].as_str().unwrap();
    assert!(message.ends_with("was replayed since you read it: read it again"), "{message}");
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), sent);
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 1);
    assert_eq!(replay(1).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    assert_eq!(app.received().await.len(), sent + 1);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_failed_so_far_waits_for_the_replay() {
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_dead(message(Some("rma:1"), "rma.created", 1)).await;
    let mut conn = app.pool.get().await.unwrap();
    let now = Clock::system().now();
    // One transaction appends and changes it, so that the dispatcher never sees it due.
    conn.transaction(async |conn| {
        let second = [message(Some("rma:1"), "rma.refunded", 2)];
        app.replica.deliveries.append(conn, now, &second).await?;
        let failed = "UPDATE deliveries SET attempts = 1, \
                      next_attempt_at = next_attempt_at + INTERVAL '1 hour'";
        Ok::<_, platform::database::DatabaseError>(conn.batch_execute(failed).await?)
    })
    .await
    .unwrap();
    drop(conn);
    app.behave(json!([{"do": "respond", "status": 500, "times": 1}])).await;
    let path = format!("/v1/deliveries/{dead}/replay");
    let (status, response) = app.operator_request(Method::POST, &path, &json!({})).await;
    assert_eq!(status, 202, "{response}");
    let due = "UPDATE deliveries SET next_attempt_at = now() WHERE sequence = 2";
    execute(&app.pool, due).await;
    app.wait_until_settled(TIMEOUT).await;
    let arrivals = app.received().await;
    let accepted = arrivals.iter().filter(|arrival| arrival.response == "200");
    assert_eq!(accepted.map(|arrival| arrival.sequence).collect::<Vec<_>>(), [1, 2]);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_counts_and_a_replay_sends_all_matches() {
    let app = TestApp::with_api(&[("DELIVERY__RETRIES", "0")]).await;
    app.behave(json!([{"do": "respond", "status": 422, "times": "always"}])).await;
    app.append(&(0..20).map(|n| message(None, "rma.created", n)).collect::<Vec<_>>()).await;
    // The other replica retries: its deliveries are dead after six attempts.
    app.wait_until_settled(TIMEOUT).await;
    app.sandbox_request(Method::DELETE, "/behaviour", &json!({})).await;
    let filter = json!({"merchant": "acme", "status": 422});
    let dry = json!({"filter": filter, "dry_run": true});
    let (status, response) = app.operator_request(Method::POST, "/v1/replays", &dry).await;
    assert_eq!((status, &response["matches"]), (200, &json!(20)));
    let real = json!({"filter": filter, "per_second": 15});
    let (status, replay) = app.operator_request(Method::POST, "/v1/replays", &real).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the replay is finished", TIMEOUT, async || {
        let replay = app.get(&path).await;
        (!replay["finished_at"].is_null()).then_some(replay)
    })
    .await;
    assert_eq!(app.get(&path).await["replayed"], 20);
    app.wait_until_settled(TIMEOUT).await;
    let delivered = app.get("/v1/deliveries?state=delivered").await;
    assert_eq!(delivered["deliveries"].as_array().unwrap().len(), 20);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_keep_the_rate_of_a_replay() {
    let app = TestApp::with_api(&[("DELIVERY__RETRIES", "0")]).await;
    app.behave(json!([{"do": "respond", "status": 422, "times": "always"}])).await;
    app.append(&(0..20).map(|n| message(None, "rma.created", n)).collect::<Vec<_>>()).await;
    app.wait_until_settled(TIMEOUT).await;
    // A paused endpoint keeps the time of each requeued delivery.
    let mut paused = merchant("acme", 2, &app.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    store_merchant(&app.pool, &paused).await;
    app.wait_for_merchant("acme", 2).await;
    let request = json!({"filter": {"merchant": "acme", "status": 422}, "per_second": 5});
    let (status, replay) = app.operator_request(Method::POST, "/v1/replays", &request).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the replay is finished", TIMEOUT, async || {
        (!app.get(&path).await["finished_at"].is_null()).then_some(())
    })
    .await;
    assert_eq!(app.get(&path).await["replayed"], 20);
    let largest_step = "SELECT max(n) AS n FROM ( \
                        SELECT count(*) AS n FROM deliveries GROUP BY next_attempt_at) AS step";
    assert_eq!(app.count(largest_step).await, 5);
    let too_soon = "SELECT count(*) AS n FROM ( \
                    SELECT next_attempt_at - lag(next_attempt_at) OVER (ORDER BY next_attempt_at) \
                    AS pause FROM (SELECT DISTINCT next_attempt_at FROM deliveries) AS step \
                    ) AS pauses WHERE pause < INTERVAL '1 second'";
    assert_eq!(app.count(too_soon).await, 0);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_replay_delays_no_other() {
    let app = TestApp::with_api(&[]).await;
    app.append_dead(message(None, "rma.created", 1)).await;
    insert_replay(&app, r#"{"kind": 5}"#, 50).await;
    let request = json!({"filter": {"merchant": "acme"}});
    let (status, replay) = app.operator_request(Method::POST, "/v1/replays", &request).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the other replay is finished", TIMEOUT, async || {
        (!app.get(&path).await["finished_at"].is_null()).then_some(())
    })
    .await;
    app.wait_until_settled(TIMEOUT).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_an_ordering_key_are_replayed_in_order() {
    let app = TestApp::with_api(&[]).await;
    let batch: Vec<_> = (0..60).map(|n| message(Some("asn:1"), "receipt", n)).collect();
    let ids = app.append_unsent_dead(&batch).await;
    let request =
        json!({"filter": {"merchant": "acme", "ordering_key": "asn:1"}, "per_second": 50});
    let (status, replay) = app.operator_request(Method::POST, "/v1/replays", &request).await;
    assert_eq!(status, 202, "{replay}");
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    let finished = eventually("the replay is finished", TIMEOUT, async || {
        let replay = app.get(&path).await;
        (!replay["finished_at"].is_null()).then_some(replay)
    })
    .await;
    assert_eq!((&finished["replayed"], &finished["skipped"]), (&json!(60), &json!(0)));
    app.wait_until_settled(TIMEOUT).await;
    let arrived: Vec<_> = app.received().await.into_iter().map(|arrival| arrival.id).collect();
    assert_eq!(arrived, ids.iter().map(ToString::to_string).collect::<Vec<_>>());
    app.stop().await;
}

async fn insert_replay(app: &TestApp, filter: &str, per_second: u32) {
    let insert = format!(
        "INSERT INTO delivery_replays (id, requested_by, filter, force, per_second, \
         state, matched, last_delivery_id, replayed, skipped, failed, created_at, advanced_at) \
         VALUES ('00000000-0000-7000-8000-000000000001', 'operator', '{filter}', false, \
         {per_second}, 'running', 0, '00000000-0000-0000-0000-000000000000', 0, 0, 0, now(), \
         now())"
    );
    execute(&app.pool, &insert).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_continues_in_another_process() {
    let app = TestApp::start(&[]).await;
    let batch: Vec<_> = (0..30).map(|n| message(None, "rma.created", n)).collect();
    let ids = app.append_unsent_dead(&batch).await;
    insert_replay(&app, "{}", 5).await;
    eventually("it has begun", TIMEOUT, async || {
        (app.count("SELECT replayed::int8 AS n FROM delivery_replays").await > 0).then_some(())
    })
    .await;
    assert!(app.replica.process.tasks.drain(TIMEOUT).await, "tasks did not stop");
    let unfinished = "SELECT count(*) AS n FROM delivery_replays WHERE finished_at IS NULL";
    assert_eq!(app.count(unfinished).await, 1);
    let next = app.start_replica().await;
    eventually("it is finished", TIMEOUT, async || {
        (app.count(unfinished).await == 0).then_some(())
    })
    .await;
    app.wait_until_settled(TIMEOUT).await;
    let mut arrived: Vec<_> = app.received().await.into_iter().map(|it| it.id).collect();
    arrived.sort_unstable();
    assert_eq!(arrived, ids.iter().map(ToString::to_string).collect::<Vec<_>>());
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_of_everything_must_be_requested_explicitly() {
    let app = TestApp::with_api(&[]).await;
    app.append_unsent_dead(&[message(None, "rma.created", 1)]).await;
    let check = async |body: &Value, expected: u16, field: &str| {
        let (status, response) = app.operator_request(Method::POST, "/v1/replays", body).await;
        assert_eq!(status, expected, "{body}: {response}");
        if !field.is_empty() {
            assert_eq!(response["errors"][0]["field"], json!(field), "{body}: {response}");
        }
    };
    for body in [json!({}), json!({"filter": {}}), json!({"filter": {"status": 422}})] {
        check(&body, 422, "$.filter").await;
    }
    check(&json!([{"all": true}]), 422, "$").await;
    for per_second in [0, -1, 1001] {
        check(&json!({"all": true, "per_second": per_second}), 422, "$.per_second").await;
    }
    check(&json!({"all": true, "filter": {"colour": 1}}), 422, "$.filter.colour").await;
    let (status, response) = app.post_text("/v1/replays", "text/plain", "{\"all\":true}").await;
    assert_eq!(status, 415, "{response}");
    let (status, response) = app.post_text("/v1/replays", "application/json", "{all}").await;
    assert_eq!(status, 400, "{response}");
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 0);
    check(&json!({"all": true, "dry_run": true}), 200, "").await;
    check(&json!({"all": true}), 202, "").await;
    app.wait_until_settled(TIMEOUT).await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_are_listed_newest_first() {
    let app = TestApp::with_api(&[]).await;
    let dead = app.append_unsent_dead(&[message(None, "rma.created", 1)]).await;
    let path = format!("/v1/deliveries/{}/replay", dead[0]);
    assert_eq!(app.operator_request(Method::POST, &path, &json!({})).await.0, 202);
    app.wait_until_settled(TIMEOUT).await;
    let request = json!({"filter": {"merchant": "acme", "outcome": "rejected"}, "per_second": 7});
    let (status, started) = app.operator_request(Method::POST, "/v1/replays", &request).await;
    assert_eq!((status, &started["state"]), (202, &json!("running")), "{started}");
    let newest = eventually("the replay is finished", TIMEOUT, async || {
        let page = app.get("/v1/replays?limit=1").await;
        (page["replays"][0]["state"] == "finished").then_some(page)
    })
    .await;
    let replay = &newest["replays"][0];
    assert_eq!((&replay["id"], &replay["per_second"]), (&started["id"], &json!(7)));
    assert_eq!(replay["requested_by"], "test-client");
    assert_eq!((&replay["replayed"], &replay["skipped"]), (&json!(0), &json!(0)));
    assert_eq!(replay["filter"]["outcome"], "rejected");
    let next = newest["next"].as_str().unwrap();
    let oldest = app.get(&format!("/v1/replays?limit=1&after={next}")).await;
    let replay = &oldest["replays"][0];
    assert_eq!(replay["filter"], json!({"delivery": dead[0], "merchant": "acme"}));
    assert_eq!((&replay["replayed"], &replay["state"]), (&json!(1), &json!("finished")));
    assert_eq!(oldest["next"], Value::Null);
    for (merchant, expected) in [("acme", 2), ("other", 0)] {
        let own = token("read", Some(merchant));
        let (_, page) = app.api_request(&own, Method::GET, "/v1/replays", &json!({})).await;
        assert_eq!(page["replays"].as_array().unwrap().len(), expected, "{merchant}: {page}");
    }
    app.stop().await;
}
