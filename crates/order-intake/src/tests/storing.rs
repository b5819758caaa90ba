//! Tests of the writer without HTTP.

use std::slice::from_ref as one;

use domain::order::OrderOutcome;
use serde_json::{Value, json};

use super::test_writer::{TestWriter, check, refunded, samples, with};
use crate::writer::PublishError;

#[tokio::test]
async fn an_order_is_stored_with_its_event() {
    let writer = TestWriter::start().await;
    let order =
        with(samples(1).remove(0), |order| order["unknown"] = json!({ "kept": [1.5, "é"] }));
    check(&writer.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let stored = writer.lines("SELECT document AS line FROM orders").await;
    assert_eq!(serde_json::from_str::<Value>(&stored[0]).unwrap(), order);
    let identifier = order["identifier"].as_str().unwrap();
    assert_eq!(writer.events().await, [format!("acme/{identifier}")]);
    let found = "SELECT identifier AS line FROM orders WHERE customer_email = ";
    let email = order["customer"]["email"].as_str().unwrap();
    assert_eq!(writer.lines(&format!("{found}'{email}'")).await, [identifier]);
    let line = order["items"][0]["identifier"].as_str().unwrap();
    let found = format!(
        "SELECT order_identifier AS line FROM order_lines WHERE line_identifier = '{line}'"
    );
    assert_eq!(writer.lines(&found).await, [identifier]);
}

#[tokio::test]
async fn an_email_address_in_the_customer_identifier_is_searchable() {
    let writer = TestWriter::start().await;
    let customers = [
        ("customer", json!({ "identifier": "Ada@Mail.example" })),
        ("the service", json!({ "identifier": "Bo@Mail.example", "email": "" })),
        ("customer", json!({ "identifier": "id@shop.example", "email": "Cy@Mail.example" })),
        ("customer", json!({ "identifier": "4711" })),
    ];
    let orders = samples(customers.len()).into_iter().zip(customers);
    let orders: Vec<_> = orders
        .map(|(order, (key, customer))| {
            with(order, |order| {
                order.as_object_mut().unwrap().remove("customer");
                order[key] = customer;
            })
        })
        .collect();
    check(&writer.publish("acme", &orders).await, &[OrderOutcome::Stored; 4]);
    let found = "SELECT coalesce(customer_email, '-') AS line FROM orders ORDER BY line";
    let emails = ["-", "ada@mail.example", "bo@mail.example", "cy@mail.example"];
    assert_eq!(writer.lines(found).await, emails);
}

#[tokio::test]
async fn an_unchanged_order_has_no_event() {
    let writer = TestWriter::start().await;
    let orders = samples(3);
    check(&writer.publish("acme", &orders).await, &[OrderOutcome::Stored; 3]);
    check(&writer.publish("acme", &orders).await, &[OrderOutcome::Unchanged; 3]);
    check(&writer.publish("rival", &orders).await, &[OrderOutcome::Stored; 3]);
    assert_eq!(writer.events().await.len(), 6);
}

#[tokio::test]
async fn an_older_snapshot_is_not_applied() {
    let writer = TestWriter::start().await;
    let order = samples(1).remove(0);
    let older = with(order.clone(), |order| order["updated_at"] = json!("2020-01-01T00:00:00Z"));
    writer.publish("acme", one(&order)).await.unwrap();
    for _ in 0..2 {
        check(&writer.publish("acme", one(&older)).await, &[OrderOutcome::Stale]);
    }
    let stored = writer.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(stored, [order["updated_at"].as_str().unwrap()]);
    assert_eq!(writer.events().await.len(), 1);
}

#[tokio::test]
async fn snapshots_of_one_order_in_one_batch_are_applied_in_order() {
    let writer = TestWriter::start().await;
    let first =
        with(samples(1).remove(0), |order| order["updated_at"] = json!("2026-01-01T00:00:00Z"));
    let second = with(first.clone(), |order| order["updated_at"] = json!("2026-01-02T00:00:00Z"));
    let publications = vec![
        writer.publication("acme", &[first.clone(), second.clone(), first.clone()]),
        writer.publication("acme", one(&second)),
    ];
    let results = writer.publish_batch(publications).await;
    check(&results[0], &[OrderOutcome::Stored, OrderOutcome::Stored, OrderOutcome::Stale]);
    check(&results[1], &[OrderOutcome::Unchanged]);
    assert_eq!(writer.events().await.len(), 2);
    let stored = writer.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(stored, ["2026-01-02T00:00:00Z"]);
}

#[tokio::test]
async fn the_first_of_two_snapshots_can_be_older_than_what_is_stored() {
    let writer = TestWriter::start().await;
    let order = samples(1).remove(0);
    let [oldest, middle, newest] = [1, 2, 3].map(|day| {
        with(order.clone(), |order| {
            order["updated_at"] = json!(format!("2026-01-0{day}T00:00:00Z"))
        })
    });
    check(&writer.publish("acme", &[middle]).await, &[OrderOutcome::Stored]);
    let both = writer.publish("acme", &[oldest, newest]).await;
    check(&both, &[OrderOutcome::Stale, OrderOutcome::Stored]);
    assert_eq!(writer.events().await.len(), 2);
}

#[tokio::test]
async fn the_last_of_two_snapshots_with_equal_updated_at_wins() {
    let writer = TestWriter::start().await;
    let one = samples(1).remove(0);
    let other = with(one.clone(), |order| order["note"] = json!("of the same moment"));
    for _ in 0..2 {
        let both = writer.publish("acme", &[other.clone(), one.clone()]).await;
        check(&both, &[OrderOutcome::Stored; 2]);
        assert_eq!(writer.lines("SELECT document AS line FROM orders").await, [one.to_string()]);
    }
    assert_eq!(writer.events().await.len(), 4);
}

/// The precondition must fail before anything is written, or PostgreSQL would roll back and log errors.
#[tokio::test]
async fn conflicts_are_found_before_anything_is_written() {
    let writer = TestWriter::start().await;
    let order = refunded();
    let new = samples(101).remove(100);
    check(&writer.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let newer = with(order.clone(), |order| order["updated_at"] = json!("2027-01-01T00:00:00Z"));
    check(&writer.publish("acme", &[newer]).await, &[OrderOutcome::Stored]);
    check(
        &writer.publish("acme", &[order.clone(), new]).await,
        &[OrderOutcome::Stale, OrderOutcome::Stored],
    );
    for changed in [
        with(order.clone(), |order| order["refunds"][0]["note"] = json!("changed")),
        with(order.clone(), |order| order["identifier"] = json!("another")),
        with(order, |order| {
            order["identifier"] = json!("another");
            order["refunds"][0]["identifier"] = json!("another refund");
        }),
    ] {
        let newest = with(changed, |order| order["updated_at"] = json!("2028-01-01T00:00:00Z"));
        let result = writer.publish("acme", &[newest]).await;
        assert!(matches!(result, Err(PublishError::Refunds(_))), "{result:?}");
    }
    let positions =
        writer.lines("SELECT sequence::text AS line FROM outbox ORDER BY sequence").await;
    assert_eq!(positions, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_changed_refund_rejects_its_message_and_no_other() {
    let writer = TestWriter::start().await;
    let order = refunded();
    let others = samples(104).split_off(100);
    writer.publish("acme", one(&order)).await.unwrap();
    let changed = with(order.clone(), |order| order["refunds"][0]["note"] = json!("changed"));
    let publications = vec![
        writer.publication("acme", &others[..1]),
        writer.publication("acme", &[others[1].clone(), changed]),
        writer.publication("acme", &others[2..]),
    ];
    let results = writer.publish_batch(publications).await;
    check(&results[0], &[OrderOutcome::Stored]);
    let Err(PublishError::Refunds(invalid)) = &results[1] else { panic!("{:?}", results[1]) };
    assert_eq!(invalid.errors[0].field, "$.returns_portal_order.orders[1].refunds[0]");
    check(&results[2], &[OrderOutcome::Stored; 2]);
    assert_eq!(writer.events().await.len(), 4);
}

#[tokio::test]
async fn a_refund_belongs_to_one_order() {
    let writer = TestWriter::start().await;
    let order = refunded();
    let other = with(order.clone(), |order| order["identifier"] = json!("another"));
    let results = writer
        .publish_batch(vec![
            writer.publication("acme", one(&order)),
            writer.publication("acme", one(&other)),
            writer.publication("rival", &[other]),
        ])
        .await;
    check(&results[0], &[OrderOutcome::Stored]);
    assert!(matches!(results[1], Err(PublishError::Refunds(_))));
    check(&results[2], &[OrderOutcome::Stored]);
}

#[tokio::test]
async fn a_line_of_a_refund_belongs_to_one_refund() {
    let writer = TestWriter::start().await;
    let order = refunded();
    let other = with(order.clone(), |order| {
        order["identifier"] = json!("another");
        order["refunds"][0]["identifier"] = json!("another refund");
    });
    let results = writer
        .publish_batch(vec![
            writer.publication("acme", one(&order)),
            writer.publication("acme", one(&other)),
            writer.publication("rival", one(&other)),
        ])
        .await;
    check(&results[0], &[OrderOutcome::Stored]);
    assert!(matches!(results[1], Err(PublishError::Refunds(_))));
    check(&results[2], &[OrderOutcome::Stored]);
    // The result is the same when the first order is already stored.
    let late = writer.publish("acme", one(&other)).await;
    let Err(PublishError::Refunds(invalid)) = late else { panic!("{late:?}") };
    let field = "$.returns_portal_order.orders[0].refunds[0].refund_line_items[0].identifier";
    assert_eq!(invalid.errors[0].field, field);
    let newer = with(order, |order| order["note"] = json!("other words, the same refund"));
    check(&writer.publish("acme", &[newer]).await, &[OrderOutcome::Stored]);
}

#[tokio::test]
async fn an_unstorable_order_fails_alone() {
    let writer = TestWriter::start().await;
    let orders = samples(3);
    let mut publications: Vec<_> =
        orders.iter().map(|order| writer.publication("acme", one(order))).collect();
    publications[1].orders[0].document = "PostgreSQL takes no \0".to_owned();
    let results = writer.publish_batch(publications).await;
    check(&results[0], &[OrderOutcome::Stored]);
    assert!(matches!(results[1], Err(PublishError::Database(_))));
    check(&results[2], &[OrderOutcome::Stored]);
    assert_eq!(writer.events().await.len(), 2);
}
