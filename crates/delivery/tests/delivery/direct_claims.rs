//! Messages that are claimed by the transactions that append them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use platform::Clock;
use platform::database::DatabaseError;
use testkit::eventually;

use crate::ordering_keys::nothing_overtook;
use crate::test_app::{TIMEOUT, TestApp, message};

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    state: String,
}

/// Appends two messages of a new ordering key, whose events have its name. Returns their states, in order.
async fn append_two(
    app: &TestApp,
    conn: &mut AsyncPgConnection,
    key: &str,
) -> Result<Vec<String>, DatabaseError> {
    let two = [1, 2].map(|number| message(Some(key), key, number));
    app.replica.deliveries.append(conn, Clock::system().now(), &two).await?;
    let states =
        format!("SELECT state FROM deliveries WHERE ordering_key = '{key}' ORDER BY sequence");
    let rows: Vec<Row> = diesel::sql_query(states).load(conn).await?;
    Ok(rows.into_iter().map(|row| row.state).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_claims_the_first_message_of_a_new_ordering_key() {
    let app = TestApp::start(&[]).await;
    let keys = AtomicUsize::new(0);
    // The first messages are claimed by polls, which then allow it.
    let states = eventually("a message is queued at once", TIMEOUT, async || {
        let key = format!("key-{}", keys.fetch_add(1, Ordering::Relaxed));
        let mut conn = app.pool.get().await.unwrap();
        let append = conn.transaction(async |conn| append_two(&app, conn, &key).await);
        let states = append.await.unwrap();
        app.wait_until_settled(TIMEOUT).await;
        states.contains(&"queued".to_owned()).then_some(states)
    })
    .await;
    assert_eq!(states, ["queued", "ready"]);
    let received = app.received().await;
    nothing_overtook(&received);
    assert_eq!(received.len(), 2 * keys.into_inner());
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_message_whose_transaction_fails_is_not_sent() {
    let app = TestApp::start(&[]).await;
    let keys = AtomicUsize::new(0);
    eventually("a claimed message is rolled back", TIMEOUT, async || {
        // Its claim by a poll allows others.
        app.append(&[message(None, "committed", 1)]).await;
        app.wait_until_settled(TIMEOUT).await;
        let key = format!("rolled back {}", keys.fetch_add(1, Ordering::Relaxed));
        let states = Mutex::new(Vec::new());
        let mut conn = app.pool.get().await.unwrap();
        let rolled_back: Result<(), _> = conn
            .transaction(async |conn| {
                let appended = append_two(&app, conn, &key).await?;
                states.lock().unwrap().extend(appended);
                Err(DatabaseError::Contended)
            })
            .await;
        rolled_back.unwrap_err();
        states.into_inner().unwrap().contains(&"queued".to_owned()).then_some(())
    })
    .await;
    app.dispatched().await;
    let received = app.received().await;
    assert!(received.iter().all(|message| message.event == "committed"));
    app.stop().await;
}
