//! A database that was restored from a backup.

use messaging::{Broker, MIGRATIONS};
use testkit::{Database, Namespace, eventually, process};

use crate::test_app::{TIMEOUT, append, count, stop, topology, wait_for_empty_outbox};

/// No outbox reaches this number by counting.
const MIN_FLOOR: i64 = 1_000_000_000_000;

/// Starts a process on the database, waits until it is ready, publishes a note and returns the sequence
/// number of the note.
async fn next_sequence(database: &Database, namespace: &Namespace) -> i64 {
    let process = process(database);
    let broker = Broker::start("writer", &process, namespace.settings(), topology(namespace));
    let outbox = broker.start_relay("writer", &process);
    eventually("the process is ready", TIMEOUT, async || {
        process.health.report().await.ready.then_some(())
    })
    .await;
    append(&process, &outbox, [1]).await;
    wait_for_empty_outbox(&process.pool).await;
    let newest = "SELECT max(sequence) AS n FROM published_events";
    let sequence = count(&process.pool, newest).await;
    stop(process).await;
    sequence
}

#[tokio::test(flavor = "multi_thread")]
async fn sequence_numbers_continue_after_a_restart_and_jump_ahead_after_a_restore() {
    let database = Database::create(vec![MIGRATIONS]).await;
    let namespace = Namespace::create();
    let first = next_sequence(&database, &namespace).await;
    let backup = database.back_up();
    let second = next_sequence(&database, &namespace).await;
    assert_eq!(second, first + 1, "a restart is not a restore");

    let restored = database.restore(&backup).await;
    let after_restore = next_sequence(&restored, &namespace).await;
    assert!(after_restore > MIN_FLOOR, "{after_restore}");
    assert_eq!(next_sequence(&restored, &namespace).await, after_restore + 1);

    // The same backup once more: the numbers of the first restore were used.
    let again = database.restore(&backup).await;
    let after_second_restore = next_sequence(&again, &namespace).await;
    assert!(after_second_restore > after_restore + 1, "{after_second_restore}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_the_files_is_recognised_as_restored() {
    let database = Database::create(vec![MIGRATIONS]).await;
    let namespace = Namespace::create();
    next_sequence(&database, &namespace).await;
    let copy = database.copy().await;
    let sequence = next_sequence(&copy, &namespace).await;
    assert!(sequence > MIN_FLOOR, "{sequence}");
}
