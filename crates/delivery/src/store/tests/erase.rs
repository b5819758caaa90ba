//! Erasing the data of a shopper in messages.

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
    let merchant = "acme".parse().unwrap();
    let keys = ["rma:1".to_owned(), "rma:none".to_owned()];
    for expected in [1, 0] {
        let erased =
            super::super::erase(&mut conn, &merchant, &keys, domain::erasure::erase).await.unwrap();
        assert_eq!(erased, expected);
    }
    let bodies =
        "SELECT convert_from(body, 'UTF8') AS line FROM delivery_messages ORDER BY ordering_key";
    assert_eq!(lines(&mut conn, bodies).await, [r#"{"note":"erased","weight":1.5}"#, &body("two")]);
    let responses = "SELECT response_body || '/' || response_headers AS line FROM delivery_attempts JOIN delivery_messages ON id = delivery ORDER BY ordering_key";
    assert_eq!(lines(&mut conn, responses).await, ["erased/", "thanks/x-name: one"]);
    let rival = "rival".parse().unwrap();
    let keys = ["rma:2".to_owned()];
    let erased = super::super::erase(&mut conn, &rival, &keys, domain::erasure::erase).await;
    assert_eq!(erased.unwrap(), 0, "another merchant's message stays");
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
    let (merchant, keys) = ("acme".parse().unwrap(), ["rma:1".to_owned()]);
    super::super::erase(&mut conn, &merchant, &keys, domain::erasure::erase).await.unwrap();
    let expired = super::super::new_id(now - TimeDelta::days(31));
    // The database was restored from a backup that is older than this message.
    let unknown = super::super::new_id(now);
    let letters = [dead[0], dead[1], expired, unknown].map(|id| (id, 0));
    let oldest_kept = super::super::min_id_at(now - TimeDelta::days(30));
    let outdated =
        super::super::outdated_dead_letters(&mut conn, letters.into_iter(), oldest_kept).await;
    assert_eq!(outdated.unwrap(), [(dead[0], 0), (expired, 0)].into());
}
