//! A database that was restored from a backup.

use testkit::{Namespace, eventually};

use crate::test_app::{TIMEOUT, TestApp, message};

/// Delivers a message with this ordering key and returns its `X-Service-Sequence`.
async fn next_sequence(app: &TestApp, ordering_key: &str) -> i64 {
    app.append(&[message(Some(ordering_key), "rma.created", 1)]).await;
    app.wait_until_settled(TIMEOUT).await;
    app.received().await.last().unwrap().sequence
}

#[tokio::test(flavor = "multi_thread")]
async fn merchants_see_higher_sequence_numbers_after_a_restore() {
    let before = TestApp::start(&[]).await;
    assert_eq!(next_sequence(&before, "asn:1").await, 1);
    let backup = before.database.back_up();
    // The backup has neither this message nor the second ordering key.
    let seen = next_sequence(&before, "asn:1").await.max(next_sequence(&before, "asn:2").await);
    let database = before.database.restore(&backup).await;
    before.stop().await;

    let restored = TestApp::start_on(database, Namespace::create(), &[]).await;
    let known = next_sequence(&restored, "asn:1").await;
    assert!(known > seen, "{known}");
    assert_eq!(next_sequence(&restored, "asn:1").await, known + 1);
    let new = next_sequence(&restored, "asn:2").await;
    assert!(new > seen, "{new}");
    assert_eq!(next_sequence(&restored, "asn:2").await, new + 1);
    restored.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fail_over_to_a_standby_that_lacks_commits_is_noticed_by_a_running_service() {
    let app = TestApp::start(&[]).await;
    let seen = next_sequence(&app, "asn:1").await;
    // The timeline of a new primary is another one, and its connections are new.
    let fail_over = "UPDATE database_identity SET identity = '0000FFFF' || substr(identity, 9); \
                     SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE datname = current_database() AND pid <> pg_backend_pid()";
    app.database.execute_raw(fail_over).await;
    let floor = "SELECT sequence_floor AS n FROM database_identity";
    eventually("the service checks the new primary", TIMEOUT, async || {
        (app.database.count(floor).await > 0).then_some(())
    })
    .await;
    let next = next_sequence(&app, "asn:1").await;
    assert!(next > 1_000_000_000_000 + seen, "{next}");
    app.stop().await;
}
