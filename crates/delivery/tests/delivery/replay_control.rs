//! Dry runs, and replays that are paused, resumed and stopped.

use diesel_async::SimpleAsyncConnection as _;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::eventually;
use uuid::Uuid;

use crate::test_app::{TIMEOUT, TestApp, execute, merchant, message, store_merchant};

async fn start(app: &TestApp, body: Value) -> (u16, Value) {
    app.operator_request(Method::POST, "/v1/replays", &body).await
}

async fn change(app: &TestApp, replay: &Value, action: &str) -> (u16, Value) {
    let path = format!("/v1/replays/{}/{action}", replay["id"].as_str().unwrap());
    app.operator_request(Method::POST, &path, &json!({})).await
}

async fn wait_until_finished(app: &TestApp, replay: &Value) -> Value {
    let path = format!("/v1/replays/{}", replay["id"].as_str().unwrap());
    eventually("the replay is finished", TIMEOUT, async || {
        let replay = app.get(&path).await;
        (replay["state"] == "finished").then_some(replay)
    })
    .await
}

/// Pauses the endpoint of `acme`, so that replayed deliveries stay pending.
async fn pause_endpoint(app: &TestApp) {
    let mut paused = merchant("acme", 2, &app.sandbox.url(""));
    paused.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    store_merchant(&app.pool, &paused).await;
    app.wait_for_merchant("acme", 2).await;
    eventually("the API knows that the endpoint is paused", TIMEOUT, async || {
        let page = app.get("/v1/endpoints?state=paused").await;
        (page["endpoints"][0]["merchant"] == "acme").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_shows_what_a_replay_would_send() {
    let app = TestApp::with_api(&[]).await;
    let mut batch: Vec<_> = (0..12).map(|n| message(Some("rma:1"), "rma.created", n)).collect();
    for number in [1, 2] {
        batch[number].merchant = "other".parse().unwrap();
    }
    batch[3].kind = domain::message_kind::MessageKind::ExchangeOrder;
    let ids = app.append_unsent_dead(&batch).await;
    let (status, run) = start(&app, json!({"all": true, "dry_run": true, "per_second": 5})).await;
    assert_eq!(status, 200, "{run}");
    assert_eq!((&run["matches"], &run["estimated_seconds"]), (&json!(12), &json!(3)), "{run}");
    let by_merchant =
        json!([{"merchant": "acme", "matches": 10}, {"merchant": "other", "matches": 2}]);
    let by_kind = json!([{"kind": "rma", "matches": 11}, {"kind": "exchange-order", "matches": 1}]);
    assert_eq!((&run["by_merchant"], &run["by_kind"]), (&by_merchant, &by_kind), "{run}");
    for name in ["dry_run", "force", "all"] {
        let mut body = json!({"all": true, "dry_run": true});
        body[name] = Value::Null;
        assert_eq!(start(&app, body).await.0, 422, "null is not false: {name}");
    }
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 0);
    let samples = run["samples"].as_array().unwrap();
    let first: Vec<_> = samples.iter().map(|sample| sample["id"].clone()).collect();
    assert_eq!(first, ids[..10].iter().map(|id| json!(id)).collect::<Vec<_>>());
    let mut sample = samples[3].clone();
    assert!(sample["created_at"].take().is_string(), "{sample}");
    let expected = json!({
        "id": ids[3], "merchant": "acme", "kind": "exchange-order", "event": "rma.created",
        "ordering_key": "rma:1", "last_outcome": "rejected", "last_status": 422, "created_at": null,
    });
    assert_eq!(sample, expected);
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 0);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_starts_only_if_as_many_deliveries_match_as_expected() {
    let app = TestApp::with_api(&[]).await;
    pause_endpoint(&app).await;
    let batch: Vec<_> = (0..3).map(|n| message(None, "rma.created", n)).collect();
    app.append_unsent_dead(&batch).await;
    let request = |expected: i64, tolerance: i64| {
        let filter = json!({"merchant": "acme"});
        json!({"filter": filter, "expect_matches": expected, "tolerance": tolerance})
    };
    for (expected, tolerance) in [(2, 0), (4, 0), (0, 2), (6, 2)] {
        let (status, response) = start(&app, request(expected, tolerance)).await;
        assert_eq!((status, &response["matches"]), (409, &json!(3)), "{response}");
        let message = response["message"].as_str().unwrap();
        assert!(message.starts_with("3 deliveries match"), "{message}");
    }
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 0);
    let (status, replay) = start(&app, request(5, 2)).await;
    assert_eq!((status, &replay["matched"]), (202, &json!(3)), "{replay}");
    assert_eq!(wait_until_finished(&app, &replay).await["replayed"], 3);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_a_used_key_is_the_same_replay() {
    let app = TestApp::with_api(&[]).await;
    pause_endpoint(&app).await;
    let batch: Vec<_> = (0..3).map(|n| message(None, "rma.created", n)).collect();
    app.append_unsent_dead(&batch).await;
    let request = |expected: i64| json!({"filter": {"merchant": "acme"}, "expect_matches": expected, "per_second": 1});
    // A request that failed does not use up its key.
    assert_eq!(app.start_replay("1", &request(2)).await.0, 409);
    let right = request(3);
    let (first, second) =
        tokio::join!(app.start_replay("1", &right), app.start_replay("1", &right));
    assert_eq!((first.0, first.1["state"].as_str()), (202, Some("running")), "{first:?}");
    assert_eq!(first, second);
    wait_until_finished(&app, &first.1).await;
    // No delivery is dead now, but the request was accepted before.
    assert_eq!(app.start_replay("1", &right).await, first);
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 1);
    assert_eq!(app.start_replay("1", &request(0)).await.0, 422);
    assert_eq!(app.start_replay("2", &right).await.0, 409);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_replay_waits_until_it_is_resumed_also_after_a_restart() {
    let app = TestApp::with_api(&[]).await;
    pause_endpoint(&app).await;
    let batch: Vec<_> = (0..12).map(|n| message(None, "rma.created", n)).collect();
    app.append_unsent_dead(&batch).await;
    let (_, replay) = start(&app, json!({"filter": {"merchant": "acme"}, "per_second": 1})).await;
    let (status, paused) = change(&app, &replay, "pause").await;
    assert_eq!(paused["changed_by"], replay["requested_by"], "{paused}");
    assert_eq!((status, &paused["state"]), (200, &json!("paused")), "{paused}");
    assert_eq!(paused["finished_at"], Value::Null);
    let (status, again) = change(&app, &replay, "pause").await;
    assert_eq!((status, &again["state"]), (200, &json!("paused")), "{again}");

    // Both replicas and a new one finish a later replay, and leave the paused one alone.
    let restarted = app.start_replica().await;
    let (_, later) = start(&app, json!({"filter": {"merchant": "nobody"}})).await;
    wait_until_finished(&app, &later).await;
    let list = app.get("/v1/replays?state=paused&merchant=acme").await;
    assert_eq!(list["replays"].as_array().unwrap().len(), 1, "{list}");
    assert_eq!(list["replays"][0]["replayed"], paused["replayed"], "{list}");

    let (status, resumed) = change(&app, &replay, "resume").await;
    assert_eq!((status, &resumed["state"]), (200, &json!("running")), "{resumed}");
    let finished = wait_until_finished(&app, &replay).await;
    let progress = ["matched", "replayed", "skipped", "failed"].map(|name| &finished[name]);
    assert_eq!(progress, [&json!(12), &json!(12), &json!(0), &json!(0)]);
    for action in ["pause", "resume", "stop"] {
        let (status, response) = change(&app, &replay, action).await;
        assert_eq!(status, 409, "{action}: {response}");
        assert!(response["message"].as_str().unwrap().ends_with("is finished"), "{response}");
    }
    restarted.stop().await;
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_replay_cannot_be_resumed() {
    let app = TestApp::with_api(&[]).await;
    pause_endpoint(&app).await;
    let batch: Vec<_> = (0..12).map(|n| message(None, "rma.created", n)).collect();
    app.append_unsent_dead(&batch).await;
    let (_, replay) = start(&app, json!({"filter": {"merchant": "acme"}, "per_second": 1})).await;
    change(&app, &replay, "pause").await;
    let (status, stopped) = change(&app, &replay, "stop").await;
    assert_eq!((status, &stopped["state"]), (200, &json!("stopped")), "{stopped}");
    assert!(stopped["finished_at"].is_string(), "{stopped}");
    assert_eq!(change(&app, &replay, "stop").await.0, 200);
    for action in ["pause", "resume"] {
        assert_eq!(change(&app, &replay, action).await.0, 409, "{action}");
    }
    let missing = json!({"id": Uuid::now_v7()});
    assert_eq!(change(&app, &missing, "stop").await.0, 404);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_cannot_be_replayed_does_not_stop_the_replay() {
    let app = TestApp::with_api(&[]).await;
    pause_endpoint(&app).await;
    let batch: Vec<_> = (0..5).map(|n| message(None, "rma.created", n)).collect();
    let ids = app.append_unsent_dead(&batch).await;
    let refuse = format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION 'refused'; END $$; \
         CREATE TRIGGER refuse BEFORE INSERT ON deliveries FOR EACH ROW \
         WHEN (NEW.id = '{}') EXECUTE FUNCTION refuse()",
        ids[2]
    );
    execute(&app.pool, &refuse).await;
    let (_, replay) = start(&app, json!({"filter": {"merchant": "acme"}})).await;
    let finished = wait_until_finished(&app, &replay).await;
    let progress = ["matched", "replayed", "skipped", "failed"].map(|name| &finished[name]);
    assert_eq!(progress, [&json!(5), &json!(4), &json!(0), &json!(1)]);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_replays_of_a_delivery_at_once_both_get_the_pending_delivery() {
    let app = TestApp::with_api(&[]).await;
    pause_endpoint(&app).await;
    let id = app.append_unsent_dead(&[message(None, "rma.created", 1)]).await[0];
    let path = format!("/v1/deliveries/{id}/replay");
    let replay = async || app.operator_request(Method::POST, &path, &json!({})).await;
    // The first replay is not committed yet when the second begins.
    let mut first = app.pool.get().await.unwrap();
    let insert = format!(
        "BEGIN; INSERT INTO deliveries \
         (id, merchant, kind, sequence, state, next_attempt_at, replay_number) \
         VALUES ('{id}', 'acme', 'rma', 1, 'ready', now(), 1)"
    );
    first.batch_execute(&insert).await.unwrap();
    let committing = async {
        eventually("the second replay waits", TIMEOUT, async || {
            let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                           WHERE datname = current_database() AND wait_event_type = 'Lock'";
            (app.count(waiting).await > 0).then_some(())
        })
        .await;
        first.batch_execute("COMMIT").await.unwrap();
    };
    let ((status, delivery), ()) = tokio::join!(replay(), committing);
    assert_eq!((status, &delivery["state"]), (202, &json!("pending")), "{delivery}");
    assert_eq!((&delivery["id"], &delivery["attempt_count"]), (&json!(id), &json!(0)));
    // A replay that comes later, before an attempt, has the same result.
    let (status, delivery) = replay().await;
    assert_eq!((status, &delivery["state"]), (202, &json!("pending")), "{delivery}");
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 0);
    let attempted = format!("UPDATE deliveries SET attempts = 1 WHERE id = '{id}'");
    execute(&app.pool, &attempted).await;
    let (status, response) = replay().await;
    assert_eq!(status, 409, "{response}");
    app.stop().await;
}
