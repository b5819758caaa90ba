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
        let id = super::super::append(&mut conn, now, &[message]).await.unwrap()[0];
        settle(&mut conn, settlement(id, Decision::Dead, Signal::Hold, now)).await;
    }
    conn.batch_execute("UPDATE delivery_attempts SET response_body = 'thanks'").await.unwrap();
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
    let responses = "SELECT response_body AS line FROM delivery_attempts JOIN delivery_messages ON id = delivery ORDER BY ordering_key";
    assert_eq!(lines(&mut conn, responses).await, ["erased", "thanks"]);
    let rival = "rival".parse().unwrap();
    let keys = ["rma:2".to_owned()];
    let erased = super::super::erase(&mut conn, &rival, &keys, domain::erasure::erase).await;
    assert_eq!(erased.unwrap(), 0, "another merchant's message stays");
}
