//! Purges of dead-letter queues that are longer than a purge may hold in memory.

use std::collections::{BTreeMap, HashSet};

use messaging::{Exchange, Incoming, Message, OutdatedLetters, Publisher, purge_dead_letters};
use platform::database::DatabaseError;
use serde_json::{Value, json};
use testkit::eventually;

use crate::test_app::{QUEUE, TIMEOUT, TestApp};

const MAX_HELD: u16 = 10;
const OUTDATED: &str = "outdated";
const KEPT: &str = "kept";

/// Removes the dead letters with the body [`OUTDATED`].
struct ByBody;

impl OutdatedLetters for ByBody {
    async fn outdated(&self, letters: &[Incoming]) -> Result<HashSet<u64>, DatabaseError> {
        assert!(letters.len() <= usize::from(MAX_HELD), "{} dead letters", letters.len());
        let outdated = letters.iter().filter(|letter| letter.body == OUTDATED.as_bytes());
        Ok(outdated.map(|letter| letter.delivery_tag).collect())
    }
}

fn dead_letter_queue(app: &TestApp) -> String {
    format!("{}.{QUEUE}.dead", app.namespace.name)
}

/// Publishes dead letters with these bodies, numbered from zero.
async fn publish(app: &TestApp, bodies: &[&str]) {
    let letter = |(number, body): (usize, &&str)| Message {
        exchange: Exchange(String::new()),
        routing_key: dead_letter_queue(app),
        id: format!("message {number}"),
        content_type: "text/plain",
        headers: vec![("number", number.to_string())],
        body: body.as_bytes().to_vec(),
    };
    let letters: Vec<_> = bodies.iter().enumerate().map(letter).collect();
    let connection = &app.broker.publishing;
    eventually("connected", TIMEOUT, async || connection.state().ok()).await;
    let confirms = Publisher::new(connection.clone()).publish(&letters).await.unwrap();
    assert!(confirms.iter().all(Result::is_ok), "{confirms:?}");
}

async fn purge(app: &TestApp) -> usize {
    purge_dead_letters(&app.broker, &dead_letter_queue(app), MAX_HELD, &ByBody).await.unwrap()
}

/// The dead letters, once all have returned to the queue.
async fn wait_for_letters(app: &TestApp, expected: usize) -> Vec<Value> {
    eventually("the dead letters are back in the queue", TIMEOUT, async || {
        Some(app.peek_dead_letters().await).filter(|letters| letters.len() == expected)
    })
    .await
}

/// Asserts that each dead letter of these numbers is in the queue once, with its properties.
fn assert_kept(letters: &[Value], numbers: impl Iterator<Item = usize>) {
    let by_number: BTreeMap<usize, &Value> = letters
        .iter()
        .map(|letter| {
            let number = letter["properties"]["headers"]["number"].as_str().unwrap();
            (number.parse().unwrap(), letter)
        })
        .collect();
    assert_eq!(by_number.len(), letters.len(), "two copies of a dead letter");
    assert_eq!(by_number.keys().copied().collect::<Vec<_>>(), numbers.collect::<Vec<_>>());
    for (number, letter) in by_number {
        let properties = &letter["properties"];
        assert_eq!(letter["payload"], KEPT);
        assert_eq!(properties["message_id"], json!(format!("message {number}")));
        assert_eq!(properties["content_type"], "text/plain");
        assert_eq!(properties["delivery_mode"], 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_reaches_dead_letters_behind_those_that_stay() {
    let app = TestApp::new().await;
    let mut bodies = vec![KEPT; 47];
    bodies[45] = OUTDATED;
    publish(&app, &bodies).await;
    assert_eq!(purge(&app).await, 1);
    let letters = wait_for_letters(&app, 46).await;
    assert_kept(&letters, (0..47).filter(|number| *number != 45));
    // The next purge moves the same dead letters again.
    assert_eq!(purge(&app).await, 0);
    assert_kept(&wait_for_letters(&app, 46).await, (0..47).filter(|number| *number != 45));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_removes_all_copies_of_a_dead_letter() {
    let app = TestApp::new().await;
    publish(&app, &[KEPT; 25]).await;
    // A process died after it had moved the dead letters 0 to 24, before it acknowledged them.
    publish(&app, &[KEPT; 25]).await;
    publish(&app, &[OUTDATED; 25]).await;
    publish(&app, &[OUTDATED; 25]).await;
    assert_eq!(purge(&app).await, 50);
    let letters = wait_for_letters(&app, 50).await;
    assert!(letters.iter().all(|letter| letter["payload"] == KEPT));
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_of_a_short_queue_do_not_move() {
    let app = TestApp::new().await;
    let bodies: Vec<_> =
        (0..15).map(|number| if number % 2 == 0 { KEPT } else { OUTDATED }).collect();
    publish(&app, &bodies).await;
    assert_eq!(purge(&app).await, 7);
    let letters = wait_for_letters(&app, 8).await;
    assert_kept(&letters, (0..15).step_by(2));
    let is_moved = |letter: &Value| letter["properties"]["headers"].get("purge-id").is_some();
    assert!(!letters.iter().any(is_moved), "{letters:?}");
    app.stop().await;
}
