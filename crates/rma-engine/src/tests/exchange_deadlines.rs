//! The times at which exchanged units are due.

use chrono::TimeDelta;
use platform::Timestamp;

use super::exchanging::{exchange_of, placed, until_progress};
use super::moving::report;
use super::projecting::order;
use super::*;

fn unreturned(events: &[String]) -> usize {
    events.iter().filter(|it| *it == "rma.exchange_unreturned").count()
}

#[tokio::test]
async fn each_exchange_order_of_a_return_has_its_own_deadline() {
    let app = TestApp::start().await;
    let mut request = json!({ "return_method": "mail-back", "units": [] });
    for name in ["A", "B"] {
        app.store("acme", &order(name, 1)).await;
        let unit = exchange_of(name, &[1])["units"][0].take();
        request["units"].as_array_mut().unwrap().push(unit);
    }
    let rma = app.start_return(&request).await;
    app.publish_event(placed(&rma, "A", "EX-A", &[1])).await;
    until_progress(&app, &rma, &["placed", "pending"]).await;
    app.publish_event(placed(&rma, "B", "EX-B", &[1])).await;
    app.until_guarantees(&rma, &["open", "open"]).await;
    for states in [["due", "open"], ["due", "due"]] {
        assert_eq!(app.deadlines().await, 1);
        app.pass_deadlines().await;
        app.until_guarantees(&rma, &states).await;
    }
    assert_eq!(app.deadlines().await, 0);
    assert_eq!(unreturned(&app.sent_messages().await), 2);
}

#[tokio::test]
async fn a_unit_whose_receipt_is_undone_has_a_deadline() {
    let app = TestApp::with(|acme| acme.settings.managed_receiving = true).await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&exchange_of("A", &[1])).await;
    let found = |finding: &str| {
        let mut found = unit("A", 1);
        found["finding"] = json!(finding);
        json!({ "findings": [found] })
    };
    app.receive(&rma, &found("received")).await;
    app.publish_event(placed(&rma, "A", "EX-A", &[1])).await;
    app.until_guarantees(&rma, &["met"]).await;
    assert_eq!(app.deadlines().await, 0);
    let (status, shown) = app.receive(&rma, &found("undo")).await;
    assert_eq!((status, app.deadlines().await), (StatusCode::OK, 1), "{shown}");
    app.pass_deadlines().await;
    app.until_guarantees(&rma, &["due"]).await;
}

#[tokio::test]
async fn a_scan_and_a_deadline_at_the_same_time_leave_no_unit_due() {
    let app = TestApp::alone().await;
    let rma = app.exchanged_return("A", &[1]).await;
    let other = app.exchanged_return("B", &[1]).await;
    let mut lock = app.lock_return(&rma).await;
    // The scan waits for the lock; the deadline does not, and the other unit is due.
    let scan = report("scan", "in_transit", Some(&rma), Some("1Z"));
    let due = async {
        app.pass_deadlines().await;
        app.until_guarantees(&other, &["due"]).await;
        lock.batch_execute("COMMIT").await.unwrap();
    };
    let ((status, scanned), ()) = tokio::join!(app.carrier(&scan), due);
    assert_eq!((status, &scanned["applied"]), (StatusCode::OK, &json!(true)), "{scanned}");
    app.pass_deadlines().await;
    eventually("no deadline is left", SOON, || async {
        (app.deadlines().await == 0).then_some(())
    })
    .await;
    app.until_guarantees(&rma, &["met"]).await;
    // One for the other unit; the deadline of the scanned one may have come first.
    assert!((1..=2).contains(&unreturned(&app.sent_messages().await)));
}

#[tokio::test]
async fn a_jump_of_the_clock_and_a_restart_move_no_deadline() {
    let app = TestApp::alone().await;
    let late = app.exchanged_return("A", &[1]).await;
    let due = app.exchanged_return("B", &[1]).await;
    let passed = |rma: &str| {
        format!(
            "UPDATE return_deadlines SET started_at = started_at - interval '60 days', \
             due_at = now() - interval '1 second' WHERE rma_identifier = '{rma}'"
        )
    };
    let soon = format!(
        "UPDATE return_deadlines SET due_at = now() + interval '40 minutes' \
         WHERE rma_identifier = '{late}'; {}",
        passed(&due)
    );
    // By this clock, both deadlines have passed. That of the database decides.
    let fast = Clock::from_fn(|| Clock::system().now() + TimeDelta::minutes(50));
    let app = app.restarted(&soon, fast).await;
    app.until_guarantees(&due, &["due"]).await;
    app.until_guarantees(&late, &["open"]).await;
    assert_eq!(unreturned(&app.sent_messages().await), 1);
    let slow = Clock::from_fn(|| Clock::system().now() - TimeDelta::minutes(50));
    let app = app.restarted(&passed(&late), slow).await;
    app.until_guarantees(&late, &["due"]).await;
    assert_eq!(app.deadlines().await, 0);
    // The times of the messages of a return do not go back.
    assert_eq!(unreturned(&app.sent_messages().await), 2);
    let arrivals = app.arrivals("acme").await;
    for rma in [&late, &due] {
        let own = arrivals.iter().filter(|it| it.body["rma_identifier"] == **rma);
        let times: Vec<Timestamp> =
            own.map(|it| it.body["updated_at"].as_str().unwrap().parse().unwrap()).collect();
        assert!(times.len() == 3 && times.is_sorted_by(|a, b| a < b), "{times:?}");
    }
}

#[tokio::test]
async fn open_exchanges_follow_the_merchants_days() {
    let app = TestApp::start().await;
    let rma = app.exchanged_return("A", &[1]).await;
    let set_days = async |days: u16| {
        let version = 1_000 + i64::from(days % 50);
        app.change_acme(version, |acme| acme.settings.returns.exchange_deadline_days = days).await;
        eventually("the deadline has the days of the merchant", SOON, || async {
            let others = format!(
                "SELECT count(*) AS n FROM return_deadlines \
                 WHERE merchant = 'acme' AND days <> {days}"
            );
            (app.number(&others).await == 0).then_some(())
        })
        .await;
    };
    set_days(60).await;
    // The exchange order was accepted 50 days ago.
    app.change_rows(
        "UPDATE return_deadlines SET started_at = started_at - interval '50 days', \
             due_at = due_at - interval '50 days' WHERE merchant = 'acme'",
    )
    .await;
    app.until_guarantees(&rma, &["open"]).await;
    set_days(49).await;
    app.until_guarantees(&rma, &["due"]).await;
    assert_eq!(unreturned(&app.sent_messages().await), 1);
}
