//! Returns that nobody sends in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::erasing::erased;
use super::moving::report;
use super::projecting::{order, refunded};
use super::*;

impl TestApp {
    /// Makes the deadlines of acme's returns due.
    pub(super) async fn pass_deadlines(&self) {
        self.change_rows(
            "UPDATE return_deadlines SET started_at = started_at - interval '60 days', \
                 due_at = now() - interval '1 second' WHERE merchant = 'acme'",
        )
        .await;
    }

    pub(super) async fn until_status(&self, rma: &str, status: &str) -> Value {
        eventually("the return has the status", SOON, || async {
            let shown = self.show(rma).await;
            (shown["status"] == status).then_some(shown)
        })
        .await
    }

    /// Stops the service, changes rows of its database, and starts it again with a clock.
    pub(super) async fn restarted(self, statements: &str, clock: Clock) -> Self {
        let Self { service, issuer, client, sandbox, .. } = self;
        let (database, namespace) = service.stop().await;
        database.execute_raw(statements).await;
        let settings: Vec<_> = issuer.settings().into_iter().chain(SETTINGS).collect();
        let service = TestService::on::<App>(&settings, clock, database, namespace).await;
        let pool = service.database.pool();
        Self { service, issuer, client, sandbox, pool }
    }

    pub(super) async fn deadlines(&self) -> i64 {
        self.number("SELECT count(*) AS n FROM return_deadlines WHERE merchant = 'acme'").await
    }

    /// Publishes acme with another number of days.
    async fn set_days(&self, version: i64, days: u16) {
        self.change_acme(version, |acme| acme.settings.returns.send_within_days = days).await;
    }
}

#[tokio::test]
async fn a_return_without_a_scan_expires_once() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let rma = app.start_return(&refund_of("A", &[1, 2])).await;
    let shown = app.show(&rma).await;
    let created: chrono::DateTime<chrono::Utc> =
        shown["created_at"].as_str().unwrap().parse().unwrap();
    let day = created.date_naive() + chrono::Days::new(31);
    assert_eq!(shown["send_by"], format!("{day}T00:00:00Z"));
    app.pass_deadlines().await;
    let expired = app.until_status(&rma, "CANCELED").await;
    assert_eq!(
        (&expired["units"][0]["is_expired"], &expired["send_by"]),
        (&json!(true), &json!(null))
    );
    // The units can be returned again.
    let second = app.start_return(&refund_of("A", &[1, 2])).await;
    assert_eq!(app.deadlines().await, 1);
    let arrivals = app.arrivals("acme").await;
    let own = arrivals.iter().filter(|it| it.body["rma_identifier"] == rma);
    let own: Vec<_> = own.map(|it| (it.event.as_str(), it.body["status"].as_str())).collect();
    assert_eq!(own, [("rma.created", Some("CREATED")), ("rma.expired", Some("CANCELED"))]);
    let (_, timeline) = app.get(&format!("/v1/returns/{rma}/timeline"), "acme").await;
    let entry = &timeline["entries"][1];
    assert_eq!((&entry["event"], &entry["actor"]), (&json!("rma.expired"), &json!("deadline")));
    assert_eq!(entry["detail"]["cause"], "expiry");
    assert_eq!(app.show(&second).await["status"], "CREATED");
}

#[tokio::test]
async fn a_scan_a_refund_and_a_cancellation_end_the_deadline() {
    let app = TestApp::start().await;
    let order = order("A", 4);
    app.store("acme", &order).await;
    let scanned = app.start_return(&refund_of("A", &[1])).await;
    let canceled = app.start_return(&refund_of("A", &[2])).await;
    let refunded_return = app.start_return(&refund_of("A", &[3])).await;
    let mut kept = refund_of("A", &[4]);
    kept["return_method"] = json!("express-returns");
    let express = app.start_return(&kept).await;
    assert_eq!(app.deadlines().await, 4);
    app.carrier(&report("1", "label", Some(&scanned), Some("1Z"))).await;
    assert_eq!(app.deadlines().await, 4);
    app.carrier(&report("2", "in_transit", Some(&scanned), Some("1Z"))).await;
    assert_eq!(app.deadlines().await, 3);
    let path = format!("/v1/returns/{canceled}/cancel");
    assert_eq!(app.post(&path, "acme", &json!({})).await.0, StatusCode::OK);
    assert_eq!(app.deadlines().await, 2);
    app.store("acme", &refunded(&order, "R1", 1, Some(&refunded_return))).await;
    assert_eq!(app.deadlines().await, 1);
    app.pass_deadlines().await;
    app.until_status(&express, "CANCELED").await;
    assert_eq!(app.show(&scanned).await["status"], "CREATED");
    assert_eq!(app.show(&refunded_return).await["status"], "REFUNDED");
    assert_eq!(app.deadlines().await, 0);
}

#[tokio::test]
async fn a_scan_and_an_expiry_at_the_same_time_have_one_effect_each() {
    let app = TestApp::alone().await;
    app.store("acme", &order("A", 3)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let other = app.start_return(&refund_of("A", &[2])).await;
    app.carrier(&report("label", "label", Some(&rma), Some("1Z"))).await;
    let mut lock = app.lock_return(&rma).await;
    // The scan waits for the lock; the expiry does not, and expires the other return.
    let scan = report("scan", "in_transit", Some(&rma), Some("1Z"));
    let scanned = app.carrier(&scan);
    let expired = async {
        app.pass_deadlines().await;
        app.until_status(&other, "CANCELED").await;
        lock.batch_execute("COMMIT").await.unwrap();
    };
    let ((status, tracked), ()) = tokio::join!(scanned, expired);
    assert_eq!((status, &tracked["applied"]), (StatusCode::OK, &json!(true)), "{tracked}");
    app.pass_deadlines().await;
    eventually("no deadline is left", SOON, || async {
        (app.deadlines().await == 0).then_some(())
    })
    .await;
    // The scan came first or brought the return back.
    let shown = app.show(&rma).await;
    assert_eq!(shown["status"], "CREATED");
    assert_eq!(shown["units"][0]["package_tracking_status"], "TRANSIT");
}

#[tokio::test]
async fn an_expiry_leaves_locked_returns_and_tries_them_again() {
    let app = TestApp::alone().await;
    app.store("acme", &order("A", 2)).await;
    app.store("acme", &order("B", 1)).await;
    let first = app.start_return(&refund_of("A", &[1])).await;
    let second = app.start_return(&refund_of("A", &[2])).await;
    let free = app.start_return(&refund_of("B", &[1])).await;
    let mut lock = app.pool.get().await.unwrap();
    let locked = lock.transaction::<_, diesel::result::Error, _>(async |conn| {
        conn.batch_execute("SELECT 1 FROM orders WHERE identifier = 'A' FOR NO KEY UPDATE").await?;
        app.pass_deadlines().await;
        app.until_status(&free, "CANCELED").await;
        Ok(())
    });
    locked.await.unwrap();
    for rma in [&first, &second] {
        app.until_status(rma, "CANCELED").await;
    }
    let mut events = app.sent_messages().await;
    events.sort_unstable();
    assert_eq!(events, [["rma.created"; 3], ["rma.expired"; 3]].concat());
}

#[tokio::test]
async fn two_replicas_expire_each_return_once() {
    const RETURNS: i32 = 50;
    let app = TestApp::alone().await;
    let issuer = app.issuer.settings();
    let settings: Vec<_> = issuer.into_iter().chain(SETTINGS).collect();
    let clock = Clock::system();
    let (database, namespace) = (&app.service.database, &app.service.namespace);
    let replica = testkit::run::<App>(&settings, clock, database, namespace).await;
    app.store("acme", &order("A", RETURNS.into())).await;
    for unit in 1..=RETURNS {
        app.start_return(&refund_of("A", &[unit])).await;
    }
    app.pass_deadlines().await;
    // The other replica takes over.
    assert!(replica.stop().await);
    eventually("no deadline is left", SOON, || async {
        (app.deadlines().await == 0).then_some(())
    })
    .await;
    let mut events = app.sent_messages().await;
    events.sort_unstable();
    let number = usize::try_from(RETURNS).unwrap();
    assert_eq!(events, [vec!["rma.created"; number], vec!["rma.expired"; number]].concat());
}

#[tokio::test]
async fn a_deadline_that_passes_while_the_service_is_down_is_due_afterwards() {
    let app = TestApp::alone().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    let passed = "UPDATE return_deadlines SET started_at = started_at - interval '60 days', \
                  due_at = now() - interval '30 days'";
    let app = app.restarted(passed, Clock::system()).await;
    app.until_status(&rma, "CANCELED").await;
    assert_eq!(app.sent_messages().await, ["rma.created", "rma.expired"]);
}

#[tokio::test]
async fn due_times_survive_a_restart_and_jumps_of_the_services_clock() {
    let app = TestApp::alone().await;
    app.store("acme", &order("A", 2)).await;
    let late = app.start_return(&refund_of("A", &[1])).await;
    let due = app.start_return(&refund_of("A", &[2])).await;
    let due_at = format!(
        "SELECT (extract(epoch FROM due_at) * 1000000)::bigint AS n FROM return_deadlines \
         WHERE rma_identifier = '{late}'"
    );
    let before = app.number(&due_at).await;
    let jump = Arc::new(AtomicI64::new(0));
    let seconds = jump.clone();
    let clock = Clock::from_fn(move || {
        Clock::system().now()
            + chrono::TimeDelta::seconds(AtomicI64::load(&seconds, Ordering::Relaxed))
    });
    let app = app.restarted("SELECT 1", clock).await;
    assert_eq!(app.number(&due_at).await, before);
    jump.store(60, Ordering::Relaxed);
    app.change_rows(&format!(
        "UPDATE return_deadlines SET started_at = started_at - interval '60 days', \
             due_at = now() - interval '1 second' WHERE rma_identifier = '{due}'"
    ))
    .await;
    app.until_status(&due, "CANCELED").await;
    assert_eq!(app.number(&due_at).await, before);
    // By its own clock, the deadline is not due for a minute.
    jump.store(-60, Ordering::Relaxed);
    app.pass_deadlines().await;
    app.until_status(&late, "CANCELED").await;
    assert_eq!(app.deadlines().await, 0);
}

/// The merchants are not replicated yet, for example in a restored database.
#[tokio::test]
async fn a_return_of_an_unknown_merchant_does_not_expire() {
    let app = TestApp::alone().await;
    app.store("acme", &order("A", 1)).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.change_rows(
        "INSERT INTO return_deadlines SELECT 'unknown', rma_identifier, kind, started_at, days, \
             now() - interval '30 days' FROM return_deadlines WHERE merchant = 'acme'",
    )
    .await;
    eventually("the deadline is tried again later", SOON, || async {
        let later = "SELECT count(*) AS n FROM return_deadlines \
                     WHERE merchant = 'unknown' AND due_at > now() + interval '5 minutes'";
        (app.number(later).await == 1).then_some(())
    })
    .await;
    assert_eq!(app.show(&rma).await["status"], "CREATED");
}

#[tokio::test]
async fn open_returns_follow_the_merchants_days() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 2)).await;
    let old = app.start_return(&refund_of("A", &[1])).await;
    // The return was started 40 days ago, and its deadline was the 60th day.
    app.set_days(1_000, 60).await;
    app.change_rows(
        "UPDATE return_deadlines SET started_at = started_at - interval '40 days', days = 60, \
             due_at = due_at - interval '10 days' WHERE merchant = 'acme'",
    )
    .await;
    let new = app.start_return(&refund_of("A", &[2])).await;
    eventually("the new return has the days of the merchant", SOON, || async {
        let days = "SELECT min(days)::bigint AS n FROM return_deadlines WHERE merchant = 'acme'";
        (app.number(days).await == 60).then_some(())
    })
    .await;
    // The deadline is due, and the present days say later.
    app.change_rows("UPDATE return_deadlines SET due_at = now() WHERE merchant = 'acme'").await;
    eventually("the deadlines are later", SOON, || async {
        let late = "SELECT count(*) AS n FROM return_deadlines \
                    WHERE merchant = 'acme' AND due_at > now() + interval '10 days'";
        (app.number(late).await == 2).then_some(())
    })
    .await;
    app.set_days(1_001, 61).await;
    app.set_days(1_002, 100).await;
    eventually("the deadlines are later", SOON, || async {
        let late = "SELECT count(*) AS n FROM return_deadlines \
                    WHERE merchant = 'acme' AND days = 100 AND due_at > now() + interval '50 days'";
        (app.number(late).await == 2).then_some(())
    })
    .await;
    assert_eq!(app.show(&old).await["status"], "CREATED");
    app.set_days(1_003, 39).await;
    app.until_status(&old, "CANCELED").await;
    assert_eq!(app.show(&new).await["status"], "CREATED");
}

#[tokio::test]
async fn open_returns_follow_the_merchants_time_zone() {
    let app = TestApp::start().await;
    app.store("acme", &order("A", 1)).await;
    app.start_return(&refund_of("A", &[1])).await;
    for (version, zone) in [(5_000, "Asia/Tokyo"), (5_001, "America/New_York"), (5_002, "UTC")] {
        app.change_acme(version, |acme| acme.settings.time_zone = zone.to_owned()).await;
        eventually("the return is due at midnight in the time zone", SOON, || async {
            let at_midnight = format!(
                "SELECT count(*) AS n FROM return_deadlines WHERE merchant = 'acme' \
                 AND zone = '{zone}' AND (due_at AT TIME ZONE '{zone}')::time = '00:00'"
            );
            (app.number(&at_midnight).await == 1).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn an_erased_return_expires_without_personal_data() {
    let app = TestApp::start().await;
    let mut order = order("A", 1);
    order.customer.first_name = Some("PLANTED".to_owned());
    app.store("acme", &order).await;
    let rma = app.start_return(&refund_of("A", &[1])).await;
    app.publish_event_at(erased(&["A"], true), Some(i64::MAX)).await;
    eventually("the return is erased", SOON, || async {
        let erased =
            "SELECT count(*) AS n FROM returns WHERE merchant = 'acme' AND erased_at IS NOT NULL";
        (app.number(erased).await == 1).then_some(())
    })
    .await;
    app.pass_deadlines().await;
    app.until_status(&rma, "CANCELED").await;
    let left =
        "SELECT count(*) AS n FROM returns WHERE merchant = 'acme' AND document LIKE '%PLANTED%'";
    assert_eq!(app.number(left).await, 0);
    assert_eq!(app.sent_messages().await.last().unwrap(), "rma.expired");
}
