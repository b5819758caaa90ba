//! Replays of dead messages when their endpoint works again.

use chrono::{Days, NaiveTime};
use platform::Clock;
use serde_json::json;
use testkit::eventually;

use crate::test_app::{TIMEOUT, TestApp, execute, merchant, message, store_merchant};

impl TestApp {
    /// Lets the endpoint of acme look as if it had just recovered from a failure that was reported, and waits until
    /// that is noticed.
    async fn recover(&self) {
        execute(&self.pool, "UPDATE delivery_endpoints SET reported_failing_since = now()").await;
        eventually("the recovery is reported", TIMEOUT, async || {
            let unreported = "SELECT count(*) AS n FROM delivery_endpoints \
                              WHERE reported_failing_since IS NOT NULL";
            (self.count(unreported).await == 0).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovered_endpoint_gets_its_young_dead_messages_again_if_it_wants_them() {
    let app = TestApp::start(&[]).await;
    let today = Clock::system().now().date_naive();
    let yesterday = (today - Days::new(1)).and_time(NaiveTime::MIN).and_utc();
    app.append_unsent_dead_at(yesterday, &[message(Some("rma:old"), "rma.created", 1)]).await;
    app.append_unsent_dead(&[
        message(Some("rma:1"), "rma.created", 2),
        message(Some("rma:1"), "rma.refunded", 3),
        message(Some("rma:2"), "rma.created", 4),
    ])
    .await;
    app.append(&[message(Some("rma:2"), "rma.refunded", 5)]).await;
    app.wait_until_settled(TIMEOUT).await;
    app.recover().await;
    assert_eq!(app.count("SELECT count(*) AS n FROM delivery_replays").await, 0);

    let mut acme = merchant("acme", 2, &app.sandbox.url(""));
    acme.endpoints.values_mut().for_each(|endpoint| endpoint.recovery_replay_days = Some(1));
    store_merchant(&app.pool, &acme).await;
    app.wait_for_merchant("acme", 2).await;
    app.recover().await;
    eventually("the replay has finished", TIMEOUT, async || {
        let finished = "SELECT count(*) AS n FROM delivery_replays \
                        WHERE requested_by = 'recovery' AND state = 'finished' \
                        AND matched = 3 AND replayed = 2 AND skipped = 1";
        (app.count(finished).await == 1).then_some(())
    })
    .await;
    app.wait_until_settled(TIMEOUT).await;
    let numbers: Vec<_> =
        app.received().await.into_iter().map(|mut it| it.body["number"].take()).collect();
    assert_eq!(numbers, [json!(5), json!(2), json!(3)]);
    app.stop().await;
}
