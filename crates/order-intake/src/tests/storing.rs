//! Publications and the database, without HTTP around them.

use std::slice::from_ref as one;

use domain::order::OrderOutcome;
use serde_json::{Value, json};

use super::desk::{Desk, check, refunded, samples, with};
use crate::writer::PublishError;

#[tokio::test]
async fn an_order_is_stored_whole_and_announced() {
    let desk = Desk::open().await;
    let order =
        with(samples(1).remove(0), |order| order["unknown"] = json!({ "kept": [1.5, "é"] }));
    check(&desk.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let stored = desk.lines("SELECT document AS line FROM orders").await;
    assert_eq!(serde_json::from_str::<Value>(&stored[0]).unwrap(), order);
    let identifier = order["identifier"].as_str().unwrap();
    assert_eq!(desk.events().await, [format!("acme/{identifier}")]);
    let found = "SELECT identifier AS line FROM orders WHERE customer_email = ";
    let email = order["customer"]["email"].as_str().unwrap();
    assert_eq!(desk.lines(&format!("{found}'{email}'")).await, [identifier]);
    let line = order["items"][0]["identifier"].as_str().unwrap();
    let found =
        format!("SELECT identifier AS line FROM orders WHERE line_identifiers @> '{{{line}}}'");
    assert_eq!(desk.lines(&found).await, [identifier]);
}

#[tokio::test]
async fn a_shopper_known_by_nothing_but_an_address_is_found_by_it() {
    let desk = Desk::open().await;
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
    check(&desk.publish("acme", &orders).await, &[OrderOutcome::Stored; 4]);
    let found = "SELECT coalesce(customer_email, '-') AS line FROM orders ORDER BY line";
    let emails = ["-", "ada@mail.example", "bo@mail.example", "cy@mail.example"];
    assert_eq!(desk.lines(found).await, emails);
}

#[tokio::test]
async fn the_same_order_again_changes_nothing_and_is_not_announced() {
    let desk = Desk::open().await;
    let orders = samples(3);
    check(&desk.publish("acme", &orders).await, &[OrderOutcome::Stored; 3]);
    check(&desk.publish("acme", &orders).await, &[OrderOutcome::Unchanged; 3]);
    check(&desk.publish("rival", &orders).await, &[OrderOutcome::Stored; 3]);
    assert_eq!(desk.events().await.len(), 6);
}

#[tokio::test]
async fn an_older_snapshot_is_noted_and_not_applied() {
    let desk = Desk::open().await;
    let order = samples(1).remove(0);
    let older = with(order.clone(), |order| order["updated_at"] = json!("2020-01-01T00:00:00Z"));
    desk.publish("acme", one(&order)).await.unwrap();
    for _ in 0..2 {
        check(&desk.publish("acme", one(&older)).await, &[OrderOutcome::Stale]);
    }
    let stored = desk.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(stored, [order["updated_at"].as_str().unwrap()]);
    assert_eq!(desk.events().await.len(), 1);
    assert_eq!(desk.lines("SELECT order_identifier AS line FROM stale_snapshots").await.len(), 1);
}

#[tokio::test]
async fn several_snapshots_of_one_order_in_one_group_follow_each_other() {
    let desk = Desk::open().await;
    let first =
        with(samples(1).remove(0), |order| order["updated_at"] = json!("2026-01-01T00:00:00Z"));
    let second = with(first.clone(), |order| order["updated_at"] = json!("2026-01-02T00:00:00Z"));
    let publications = vec![
        desk.publication("acme", &[first.clone(), second.clone(), first.clone()]),
        desk.publication("acme", one(&second)),
    ];
    let answers = desk.publish_together(publications).await;
    check(&answers[0], &[OrderOutcome::Stored, OrderOutcome::Stored, OrderOutcome::Stale]);
    check(&answers[1], &[OrderOutcome::Unchanged]);
    assert_eq!(desk.events().await.len(), 2);
    let stored = desk.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(stored, ["2026-01-02T00:00:00Z"]);
}

#[tokio::test]
async fn the_first_of_two_snapshots_can_be_older_than_what_is_stored() {
    let desk = Desk::open().await;
    let order = samples(1).remove(0);
    let [oldest, middle, newest] = [1, 2, 3].map(|day| {
        with(order.clone(), |order| {
            order["updated_at"] = json!(format!("2026-01-0{day}T00:00:00Z"))
        })
    });
    check(&desk.publish("acme", &[middle]).await, &[OrderOutcome::Stored]);
    let both = desk.publish("acme", &[oldest, newest]).await;
    check(&both, &[OrderOutcome::Stale, OrderOutcome::Stored]);
    assert_eq!(desk.events().await.len(), 2);
}

#[tokio::test]
async fn two_snapshots_of_one_moment_end_the_same_however_often_they_come() {
    let desk = Desk::open().await;
    let one = samples(1).remove(0);
    let other = with(one.clone(), |order| order["note"] = json!("of the same moment"));
    for _ in 0..2 {
        let both = desk.publish("acme", &[other.clone(), one.clone()]).await;
        check(&both, &[OrderOutcome::Stored; 2]);
        assert_eq!(desk.lines("SELECT document AS line FROM orders").await, [one.to_string()]);
    }
    assert_eq!(desk.events().await.len(), 4);
}

/// Or else PostgreSQL would write rows and take them back, and its log would be full of errors.
#[tokio::test]
async fn what_is_no_news_is_seen_before_anything_is_written() {
    let desk = Desk::open().await;
    let (order, new) = (refunded(), samples(101).remove(100));
    check(&desk.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let newer = with(order.clone(), |order| order["updated_at"] = json!("2027-01-01T00:00:00Z"));
    check(&desk.publish("acme", &[newer]).await, &[OrderOutcome::Stored]);
    check(
        &desk.publish("acme", &[order.clone(), new]).await,
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
        let answer = desk.publish("acme", &[newest]).await;
        assert!(matches!(answer, Err(PublishError::Refunds(_))), "{answer:?}");
    }
    let positions = desk.lines("SELECT sequence::text AS line FROM outbox ORDER BY sequence").await;
    assert_eq!(positions, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_changed_refund_rejects_its_message_and_no_other() {
    let desk = Desk::open().await;
    let (order, others) = (refunded(), samples(104).split_off(100));
    desk.publish("acme", one(&order)).await.unwrap();
    let changed = with(order.clone(), |order| order["refunds"][0]["note"] = json!("changed"));
    let publications = vec![
        desk.publication("acme", &others[..1]),
        desk.publication("acme", &[others[1].clone(), changed]),
        desk.publication("acme", &others[2..]),
    ];
    let answers = desk.publish_together(publications).await;
    check(&answers[0], &[OrderOutcome::Stored]);
    let Err(PublishError::Refunds(invalid)) = &answers[1] else { panic!("{:?}", answers[1]) };
    assert_eq!(invalid.errors[0].field, "$.returns_portal_order.orders[1].refunds[0]");
    check(&answers[2], &[OrderOutcome::Stored; 2]);
    assert_eq!(desk.events().await.len(), 4);
}

#[tokio::test]
async fn a_refund_belongs_to_one_order() {
    let desk = Desk::open().await;
    let order = refunded();
    let other = with(order.clone(), |order| order["identifier"] = json!("another"));
    let answers = desk
        .publish_together(vec![
            desk.publication("acme", one(&order)),
            desk.publication("acme", one(&other)),
            desk.publication("rival", &[other]),
        ])
        .await;
    check(&answers[0], &[OrderOutcome::Stored]);
    assert!(matches!(answers[1], Err(PublishError::Refunds(_))));
    check(&answers[2], &[OrderOutcome::Stored]);
}

#[tokio::test]
async fn a_line_of_a_refund_belongs_to_one_refund() {
    let desk = Desk::open().await;
    let order = refunded();
    let other = with(order.clone(), |order| {
        order["identifier"] = json!("another");
        order["refunds"][0]["identifier"] = json!("another refund");
    });
    let answers = desk
        .publish_together(vec![
            desk.publication("acme", one(&order)),
            desk.publication("acme", one(&other)),
            desk.publication("rival", one(&other)),
        ])
        .await;
    check(&answers[0], &[OrderOutcome::Stored]);
    assert!(matches!(answers[1], Err(PublishError::Refunds(_))));
    check(&answers[2], &[OrderOutcome::Stored]);
    // The same when the first is stored already.
    let late = desk.publish("acme", one(&other)).await;
    let Err(PublishError::Refunds(invalid)) = late else { panic!("{late:?}") };
    let field = "$.returns_portal_order.orders[0].refunds[0].refund_line_items[0].identifier";
    assert_eq!(invalid.errors[0].field, field);
    let newer = with(order, |order| order["note"] = json!("other words, the same refund"));
    check(&desk.publish("acme", &[newer]).await, &[OrderOutcome::Stored]);
}

#[tokio::test]
async fn a_poisonous_order_harms_only_itself() {
    let desk = Desk::open().await;
    let orders = samples(3);
    let mut publications: Vec<_> =
        orders.iter().map(|order| desk.publication("acme", one(order))).collect();
    publications[1].orders[0].document = "PostgreSQL takes no \0".to_owned();
    let answers = desk.publish_together(publications).await;
    check(&answers[0], &[OrderOutcome::Stored]);
    assert!(matches!(answers[1], Err(PublishError::Database(_))));
    check(&answers[2], &[OrderOutcome::Stored]);
    assert_eq!(desk.events().await.len(), 2);
}
