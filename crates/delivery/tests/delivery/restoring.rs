//! A database that was restored from a backup.

use testkit::Namespace;

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
