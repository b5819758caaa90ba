//! Erasing the data of a shopper in messages.

use platform::database::DatabaseError;

use super::super::ErasedMessages;
use super::*;

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

async fn lines(conn: &mut AsyncPgConnection, query: &str) -> Vec<String> {
    let lines: Vec<Line> = diesel::sql_query(query).load(conn).await.unwrap();
    lines.into_iter().map(|row| row.line).collect()
}

/// Erases the messages of a merchant with these ordering keys.
async fn erase(
    conn: &mut AsyncPgConnection,
    merchant: &str,
    keys: &[String],
) -> Result<usize, DatabaseError> {
    let messages = ErasedMessages { ordering_keys: keys, before: None };
    let merchant = merchant.parse().unwrap();
    super::super::erase(conn, &merchant, messages, |_| true, domain::erasure::erase).await
}

#[tokio::test]
async fn only_messages_of_the_shopper_from_before_the_erasure_change() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let keys = ["asn:1".to_owned()];
    for (shopper, at) in [("one", now), ("two", now), ("one", now + TimeDelta::seconds(1))] {
        let body = format!(r#"{{"note":"{shopper}","shopper":"{shopper}"}}"#);
        let message = NewMessage { body: body.into(), ..message(Some("asn:1")) };
        let id = super::super::append(&conn, at, &[message]).await.unwrap()[0];
        settle(&mut conn, settlement(id, Decision::Dead, Signal::Hold, at)).await;
    }
    conn.batch_execute("UPDATE delivery_attempts SET response_body = 'thanks'").await.unwrap();
    let before = Some(now + TimeDelta::seconds(1));
    let messages = ErasedMessages { ordering_keys: &keys, before };
    let is_of_shopper = |message: &serde_json::Value| message["shopper"] == "one";
    let (merchant, erase) = ("acme".parse().unwrap(), domain::erasure::erase);
    let changed =
        super::super::erase(&mut conn, &merchant, messages, is_of_shopper, erase).await.unwrap();
    assert_eq!(changed, 1);
    let stored = "SELECT convert_from(body, 'UTF8')::json ->> 'note' || '/' || response_body AS line \
                  FROM delivery_messages JOIN delivery_attempts ON id = delivery ORDER BY sequence";
    assert_eq!(lines(&mut conn, stored).await, ["erased/erased", "two/thanks", "one/thanks"]);
}

#[tokio::test]
async fn bodies_and_responses_of_an_ordering_key_are_erased() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let body = |note: &str| format!(r#"{{"note":"{note}","weight":1.50}}"#);
    for (key, note) in [("rma:1", "one"), ("rma:2", "two")] {
        let message = NewMessage { body: body(note).into(), ..message(Some(key)) };
        let id = super::super::append(&conn, now, &[message]).await.unwrap()[0];
        settle(&mut conn, settlement(id, Decision::Dead, Signal::Hold, now)).await;
    }
    let responses =
        "UPDATE delivery_attempts SET response_body = 'thanks', response_headers = 'x-name: one'";
    conn.batch_execute(responses).await.unwrap();
    let keys = ["rma:1".to_owned(), "rma:none".to_owned()];
    for expected in [1, 0] {
        let erased = erase(&mut conn, "acme", &keys).await.unwrap();
        assert_eq!(erased, expected);
    }
    let bodies =
        "SELECT convert_from(body, 'UTF8') AS line FROM delivery_messages ORDER BY ordering_key";
    assert_eq!(lines(&mut conn, bodies).await, [r#"{"note":"erased","weight":1.5}"#, &body("two")]);
    let responses = "SELECT response_body || '/' || response_headers AS line FROM delivery_attempts JOIN delivery_messages ON id = delivery ORDER BY ordering_key";
    assert_eq!(lines(&mut conn, responses).await, ["erased/", "thanks/x-name: one"]);
    let keys = ["rma:2".to_owned()];
    let erased = erase(&mut conn, "rival", &keys).await;
    assert_eq!(erased.unwrap(), 0, "another merchant's message stays");
}

/// The result of an attempt whose response repeats the message.
fn responded(id: Uuid, now: Timestamp) -> Settlement {
    let mut responded = settlement(id, Decision::Dead, Signal::Hold, now);
    responded.attempt.response_log = "PLANTED".to_owned();
    responded.attempt.headers.response = "x-name: PLANTED".to_owned();
    responded
}

const RESPONSES: &str = "SELECT response_body || '/' || response_headers AS line \
     FROM delivery_attempts JOIN delivery_messages ON id = delivery ORDER BY ordering_key";

#[tokio::test]
async fn a_response_to_a_message_that_was_erased_in_flight_is_logged_erased() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    // The second message has nothing to erase, but the response to it may.
    for (key, body) in [("rma:1", r#"{"note":"PLANTED"}"#), ("rma:2", "{}"), ("rma:3", "{}")] {
        let message = NewMessage { body: body.into(), ..message(Some(key)) };
        let id = super::super::append(&conn, now, &[message]).await.unwrap()[0];
        if key != "rma:3" {
            erase(&mut conn, "acme", &[key.to_owned()]).await.unwrap();
        }
        settle(&mut conn, responded(id, now)).await;
    }
    let expected = ["erased/", "erased/", "PLANTED/x-name: PLANTED"];
    assert_eq!(lines(&mut conn, RESPONSES).await, expected);
}

#[tokio::test]
async fn a_response_that_arrives_during_the_erasure_is_logged_erased_without_a_wait() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut eraser, mut settler) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let id = append(&mut settler, now, Some("rma:1")).await;
    eraser.batch_execute("BEGIN").await.unwrap();
    erase(&mut eraser, "acme", &["rma:1".to_owned()]).await.unwrap();
    settle(&mut settler, responded(id, now)).await;
    eraser.batch_execute("COMMIT").await.unwrap();
    assert_eq!(lines(&mut settler, RESPONSES).await, ["erased/"]);
}

#[tokio::test]
async fn an_erasure_waits_for_a_response_that_is_being_logged() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let (mut eraser, mut settler) = (pool.get().await.unwrap(), pool.get().await.unwrap());
    let id = append(&mut settler, now, Some("rma:1")).await;
    settler.batch_execute("BEGIN").await.unwrap();
    settle(&mut settler, responded(id, now)).await;
    let committing = async {
        wait_for_blocked_session(&pool).await;
        settler.batch_execute("COMMIT").await.unwrap();
    };
    let keys = ["rma:1".to_owned()];
    let (erased, ()) = tokio::join!(erase(&mut eraser, "acme", &keys), committing);
    erased.unwrap();
    assert_eq!(lines(&mut eraser, RESPONSES).await, ["erased/"]);
}

#[tokio::test]
async fn dead_letters_of_erased_and_expired_messages_are_outdated() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let mut dead = Vec::new();
    for key in ["rma:1", "rma:2"] {
        let message = NewMessage { body: r#"{"note":"one"}"#.into(), ..message(Some(key)) };
        let id = super::super::append(&conn, now, &[message]).await.unwrap()[0];
        settle(&mut conn, settlement(id, Decision::Dead, Signal::Hold, now)).await;
        dead.push(id);
    }
    let keys = ["rma:1".to_owned()];
    erase(&mut conn, "acme", &keys).await.unwrap();
    let expired = super::super::new_id(now - TimeDelta::days(31));
    // The database was restored from a backup that is older than this message.
    let unknown = super::super::new_id(now);
    let letters = [dead[0], dead[1], expired, unknown].map(|id| (id, 0));
    let oldest_kept = super::super::min_id_at(now - TimeDelta::days(30));
    let outdated =
        super::super::outdated_dead_letters(&mut conn, letters.into_iter(), oldest_kept).await;
    assert_eq!(outdated.unwrap(), [(dead[0], 0), (expired, 0)].into());
}

#[tokio::test]
async fn no_dead_letter_expires_by_a_clock_that_is_ahead() {
    use super::super::{min_id_at, oldest_kept};
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let ahead = now + TimeDelta::days(31);
    assert!(oldest_kept(&mut conn, ahead, 30).await.unwrap().is_nil());
    let oldest = oldest_kept(&mut conn, now, 30).await.unwrap();
    let (expected, tolerance) = (now - TimeDelta::days(30), TimeDelta::minutes(50));
    assert!(min_id_at(expected - tolerance) < oldest, "{oldest}");
    assert!(oldest < min_id_at(expected + tolerance), "{oldest}");
}

#[tokio::test]
async fn no_partition_is_dropped_by_a_clock_that_is_ahead() {
    let now = Clock::system().now();
    let (_database, pool) = database(now).await;
    let mut conn = pool.get().await.unwrap();
    let first_day = "SELECT count(*)::text AS text FROM pg_inherits, pg_class \
                     WHERE pg_class.oid = inhrelid AND relname = 'delivery_messages_' \
                         || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')";
    let partitions = Partitions { retention_days: 30 };
    let ahead = partitions.maintain(&mut conn, now + TimeDelta::days(32)).await.unwrap_err();
    assert!(ahead.to_string().contains("differ by more than an hour"), "{ahead}");
    assert_eq!(query_text(&mut conn, first_day).await, "1");
}
