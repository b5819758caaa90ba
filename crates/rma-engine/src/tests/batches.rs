//! Requests that are processed together.

use diesel_async::SimpleAsyncConnection as _;
use futures_util::future::{join, join_all};

use super::projecting::order;
use super::*;

fn report(id: &str, event: &str, rma: &str) -> Value {
    json!({ "event_identifier": id, "event": event, "rma_identifier": rma, "tracking_number": rma })
}

/// Starts a return of the first unit of new orders, one for each.
async fn start_returns(app: &TestApp, number: usize) -> Vec<String> {
    let orders: Vec<_> = (0..number).map(|index| order(&format!("B-{index}"), 1)).collect();
    join_all(orders.iter().map(|order| app.store("acme", order))).await;
    let bodies: Vec<_> = orders.iter().map(|order| refund_of(&order.identifier, &[1])).collect();
    join_all(bodies.iter().map(|body| app.start_return(body))).await
}

#[tokio::test]
async fn concurrent_requests_have_one_effect_each() {
    let app = TestApp::start().await;
    let returns = start_returns(&app, 40).await;
    let reports = returns.iter().flat_map(|rma| {
        ["label", "in_transit"].map(|event| report(&format!("{event} {rma}"), event, rma))
    });
    let reports: Vec<_> = reports.collect();
    // Each report is sent twice at the same time.
    let twice = reports.iter().map(|body| join(app.carrier(body), app.carrier(body)));
    for (first, second) in join_all(twice).await {
        assert_eq!(first.0, StatusCode::OK, "{}", first.1);
        assert_eq!(first, second);
    }
    assert_eq!(app.number("SELECT count(*) AS n FROM returns WHERE merchant = 'acme'").await, 40);
    let arrivals = app.arrivals("acme").await;
    for rma in &returns {
        let own = arrivals.iter().filter(|it| it.body["rma_identifier"] == json!(rma));
        let sequences: Vec<_> = own.map(|it| it.sequence).collect();
        let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
        let entries = timeline["entries"].as_array().unwrap();
        assert_eq!(entries.len(), 3, "{timeline}");
        // A label that comes after the scan is late, and has no message.
        let messages = entries.iter().filter(|it| it["delivery"].is_string()).count();
        assert!(messages >= 2, "{timeline}");
        assert_eq!(sequences, (1..=i64::try_from(messages).unwrap()).collect::<Vec<_>>());
        assert_eq!(app.show(rma).await["units"][0]["package_tracking_status"], "TRANSIT");
    }
}

#[tokio::test]
async fn a_rejected_request_leaves_the_others_of_its_batch_alone() {
    let app = TestApp::start().await;
    let returns = start_returns(&app, 10).await;
    let valid: Vec<_> =
        returns.iter().map(|rma| report(&format!("ok {rma}"), "in_transit", rma)).collect();
    let mut unknown_unit = report("unknown unit", "in_transit", &returns[0]);
    unknown_unit["units"] = json!([{
        "order_identifier": "none", "order_line_item_identifier": "none", "unit": 1,
    }]);
    let rejected = [
        (report("unknown return", "in_transit", "RMA-none"), StatusCode::NOT_FOUND),
        (unknown_unit, StatusCode::UNPROCESSABLE_ENTITY),
    ];
    let sent = join(
        join_all(valid.iter().map(|body| app.carrier(body))),
        join_all(rejected.iter().map(|(body, _)| app.carrier(body))),
    );
    let (accepted, refused) = sent.await;
    assert!(accepted.iter().all(|(status, _)| *status == StatusCode::OK), "{accepted:?}");
    for ((status, response), (_, expected)) in refused.iter().zip(&rejected) {
        assert_eq!(status, expected, "{response}");
    }
    // One entry and one key of each accepted report, beside the entry of the new return.
    assert_eq!(app.number("SELECT count(*) AS n FROM timeline WHERE merchant = 'acme'").await, 20);
    assert_eq!(
        app.number("SELECT count(*) AS n FROM idempotency_keys WHERE merchant = 'acme'").await,
        10
    );
}

/// The returns of two merchants with the same order identifiers do not mix.
#[tokio::test]
async fn merchants_share_batches_and_nothing_else() {
    let app = TestApp::start().await;
    let own = order("A", 1);
    for merchant in ["acme", "rival"] {
        app.store(merchant, &own).await;
    }
    let body = refund_of("A", &[1]);
    let starts =
        (0..6).flat_map(|_| ["acme", "rival"]).map(|it| app.post("/v1/returns", it, &body));
    let responses = join_all(starts).await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    assert_eq!(created, 2, "{responses:?}");
    for merchant in ["acme", "rival"] {
        let arrivals = app.arrivals(merchant).await;
        assert_eq!(arrivals.len(), 1);
        assert_eq!(arrivals[0].sequence, 1);
    }
}

#[tokio::test]
async fn a_locked_return_delays_no_other() {
    let app = TestApp::start().await;
    let returns = start_returns(&app, 2).await;
    let mut lock = app.lock_return(&returns[0]).await;
    let locked = report("locked", "in_transit", &returns[0]);
    let free = report("free", "in_transit", &returns[1]);
    let waiting = app.carrier(&locked);
    let others = async {
        for index in 0..20 {
            let mut body = free.clone();
            body["event_identifier"] = json!(format!("free {index}"));
            assert_eq!(app.carrier(&body).await.0, StatusCode::OK);
        }
        lock.batch_execute("COMMIT").await.unwrap();
    };
    let ((status, response), ()) = join(waiting, others).await;
    assert_eq!(status, StatusCode::OK, "{response}");
}

#[tokio::test]
async fn cancellations_of_a_locked_return_leave_connections_to_others() {
    let app = TestApp::alone().await;
    let locked = start_returns(&app, 1).await.remove(0);
    app.store("rival", &order("R", 1)).await;
    let lock = format!("SELECT FROM returns WHERE rma_identifier = '{locked}' FOR UPDATE");
    let path = format!("/v1/returns/{locked}/cancel");
    let cancel = async || app.post(&path, "acme", &json!({})).await;
    let other = async || {
        let (status, response) = app.post("/v1/returns", "rival", &refund_of("R", &[1])).await;
        assert_eq!(status, StatusCode::CREATED, "{response}");
    };
    let database = &app.service.database;
    for (status, response) in
        testkit::check_requests_about_locked_rows(database, &lock, cancel, other).await
    {
        // On a slow machine the time of a request can be over before the lock is released.
        let is_limited = status == StatusCode::TOO_MANY_REQUESTS;
        assert!(status == StatusCode::OK || is_limited, "{status} {response}");
    }
}

#[tokio::test]
async fn messages_whose_counters_a_replay_has_locked_delay_no_other() {
    let app = TestApp::alone().await;
    let returns = start_returns(&app, 3).await;
    let mut replay = app.pool.get().await.unwrap();
    let lock = format!(
        "BEGIN; SELECT FROM delivery_ordering_keys WHERE ordering_key IN ('rma:{}', 'rma:{}') FOR UPDATE",
        returns[0], returns[1]
    );
    replay.batch_execute(&lock).await.unwrap();
    let first = report("first", "in_transit", &returns[0]);
    let second = report("second", "in_transit", &returns[1]);
    // A merchant has one slot, so one of the two waits for a row and the other for the slot.
    let waiting = "SELECT count(*) AS n FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let database = &app.service.database;
    let others = async {
        eventually("a report waits", SOON, async || {
            Some(database.count(waiting).await).filter(|statements| *statements > 0)
        })
        .await;
        for index in 0..3 {
            let free = report(&format!("free {index}"), "in_transit", &returns[2]);
            assert_eq!(app.carrier(&free).await.0, StatusCode::OK);
        }
        replay.batch_execute("COMMIT").await.unwrap();
    };
    let ((first, second), ()) = join(join(app.carrier(&first), app.carrier(&second)), others).await;
    assert_eq!((first.0, second.0), (StatusCode::OK, StatusCode::OK), "{first:?} {second:?}");
}
