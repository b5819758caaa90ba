//! Several groups at once: of several writers, and those that one writer has under way.

use std::slice::from_ref as one;
use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use domain::order::OrderOutcome;
use platform::{ErrorKind, Failure as _, Tasks};
use serde_json::{Value, json};

use super::desk::{Desk, check, refunded, samples, with};
use crate::writer::{Answer, PublishError};

/// The same order, changed at the beginning of this year.
fn of_year(order: &Value, year: u32) -> Value {
    with(order.clone(), |order| order["updated_at"] = json!(format!("{year}-01-01T00:00:00Z")))
}

/// Publishes both, the second while PostgreSQL has the first in its hands and somebody holds a row
/// that it waits for; then that somebody goes on with this.
async fn publish_in_a_row(desk: &Desk, first: &Value, second: &Value, then: &str) -> [Answer; 2] {
    let pool = desk.database.pool();
    let mut holder = pool.get().await.unwrap();
    let held = first["identifier"].as_str().unwrap();
    let hold = format!("BEGIN; SELECT FROM orders WHERE identifier = '{held}' FOR UPDATE");
    holder.batch_execute(&hold).await.unwrap();
    let submit = |order| desk.group.submit(desk.publication("acme", one(order)));
    desk.with_writer(async {
        let later = async {
            desk.writer_waits().await;
            let going_on = async {
                testkit::eventually("it is under way", Duration::from_secs(30), async || {
                    (desk.group.waiting() == 0).then_some(())
                })
                .await;
                holder.batch_execute(then).await.unwrap();
            };
            tokio::join!(biased; submit(second), going_on).0
        };
        let (first, second) = tokio::join!(submit(first), later);
        [first.unwrap(), second.unwrap()]
    })
    .await
}

#[tokio::test]
async fn the_next_group_is_under_way_before_the_one_ahead_is_done() {
    let desk = Desk::open().await;
    let orders = samples(2);
    check(&desk.publish("acme", one(&orders[0])).await, &[OrderOutcome::Stored]);
    let newer = of_year(&orders[0], 2027);
    let answers = publish_in_a_row(&desk, &newer, &orders[1], "COMMIT").await;
    answers.iter().for_each(|answer| check(answer, &[OrderOutcome::Stored]));
    assert_eq!(desk.events().await.len(), 3);
}

#[tokio::test]
async fn a_group_that_is_no_news_leaves_the_one_ahead_alone() {
    let desk = Desk::open().await;
    let orders = samples(2);
    check(&desk.publish("acme", &orders).await, &[OrderOutcome::Stored; 2]);
    let (newer, older) = (of_year(&orders[0], 2027), of_year(&orders[1], 2020));
    let [ahead, behind] = publish_in_a_row(&desk, &newer, &older, "COMMIT").await;
    check(&ahead, &[OrderOutcome::Stored]);
    check(&behind, &[OrderOutcome::Stale]);
    assert_eq!(desk.events().await.len(), 3);
}

/// What fits when it is looked at may no longer when it is written.
#[tokio::test]
async fn a_group_that_is_overtaken_leaves_the_one_behind_alone() {
    let desk = Desk::open().await;
    let orders = samples(2);
    check(&desk.publish("acme", one(&orders[0])).await, &[OrderOutcome::Stored]);
    let newer = of_year(&orders[0], 2027);
    let overtake = "UPDATE orders SET updated_at = '2028-01-01'; COMMIT";
    let [overtaken, behind] = publish_in_a_row(&desk, &newer, &orders[1], overtake).await;
    check(&overtaken, &[OrderOutcome::Stale]);
    check(&behind, &[OrderOutcome::Stored]);
    assert_eq!(desk.events().await.len(), 2);
}

/// A refund that is known when it is looked at needs no second look; one that comes meanwhile does.
#[tokio::test]
async fn a_refund_that_comes_in_between_is_noticed() {
    let desk = Desk::open().await;
    let order = refunded();
    check(&desk.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let new = with(of_year(&order, 2027), |order| {
        order["refunds"][0]["identifier"] = json!("in between");
        order["refunds"][0]["refund_line_items"][0]["identifier"] = json!("its line");
    });
    let come = "INSERT INTO refunds VALUES ('acme', 'in between', sha256('another order'), sha256('x'), now()); COMMIT";
    let [refused, behind] = publish_in_a_row(&desk, &new, &samples(101)[100], come).await;
    assert!(matches!(refused, Err(PublishError::Refunds(_))), "{refused:?}");
    check(&behind, &[OrderOutcome::Stored]);
}

/// Somebody keeps an order to himself for too long: that is nobody else's trouble.
#[tokio::test]
async fn an_order_that_runs_out_of_time_takes_its_group_along_only_once() {
    let desk = Desk::with_patience(Duration::from_secs(1)).await;
    let orders = samples(5);
    check(&desk.publish("acme", &orders[..2]).await, &[OrderOutcome::Stored; 2]);
    let pool = desk.database.pool();
    let mut holder = pool.get().await.unwrap();
    let publish = async |orders: Vec<Value>| {
        let publications = orders.iter().map(|order| desk.publication("acme", one(order)));
        desk.publish_together(publications.collect()).await
    };

    let held = orders[0]["identifier"].as_str().unwrap();
    let hold = format!("BEGIN; SELECT FROM orders WHERE identifier = '{held}' FOR UPDATE");
    holder.batch_execute(&hold).await.unwrap();
    let newer = of_year(&orders[0], 2027);
    let answers = publish(vec![orders[2].clone(), newer, orders[3].clone()]).await;
    let [before, Err(overdue), behind] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!(overdue.kind(), ErrorKind::Unavailable);
    [before, behind].into_iter().for_each(|answer| check(answer, &[OrderOutcome::Stored]));

    // When one after the other runs out of time, those behind them are told so at once.
    holder.batch_execute("COMMIT; BEGIN; SELECT FROM orders FOR UPDATE").await.unwrap();
    let newer = orders[..3].iter().map(|order| of_year(order, 2027));
    let answers = publish(newer.chain([orders[4].clone()]).collect()).await;
    answers.iter().for_each(|answer| assert!(answer.is_err(), "{answers:?}"));
}

#[tokio::test]
async fn groups_that_lose_their_connection_are_refused_and_the_next_is_stored() {
    let desk = Desk::open().await;
    let orders = samples(2);
    check(&desk.publish("acme", one(&orders[0])).await, &[OrderOutcome::Stored]);
    let newer = of_year(&orders[0], 2027);
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = current_database() AND wait_event_type = 'Lock'; COMMIT";
    for answer in publish_in_a_row(&desk, &newer, &orders[1], cut).await {
        let Err(error @ PublishError::Database(_)) = answer else { panic!("{answer:?}") };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
    check(&desk.publish("acme", &[newer, orders[1].clone()]).await, &[OrderOutcome::Stored; 2]);
}

/// As many replicas: whoever is second has to look what is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_meet_at_the_same_orders_lose_nothing() {
    let desk = Desk::open().await;
    let (tasks, pool) = (Tasks::default(), desk.database.pool());
    let queues = [(); 4].map(|()| Desk::queue());
    for queue in &queues {
        tasks.spawn("writer", |stop| desk.writer(pool.clone(), queue).run(stop));
    }
    let order = refunded();
    let snapshot = |second: u32| {
        let updated_at = format!("2026-02-01T00:00:{second:02}Z");
        with(order.clone(), |order| order["updated_at"] = json!(updated_at))
    };
    let publications = (0..60).map(|second| desk.publication("acme", &[snapshot(second)]));
    let queues = queues.iter().cycle();
    let waiting = publications.zip(queues).map(|(publication, queue)| queue.submit(publication));
    let answers = futures_util::future::join_all(waiting).await;
    assert!(tasks.drain(Duration::from_secs(5)).await);
    let stored = answers.iter().filter(|answer| match answer.as_ref().unwrap() {
        Ok(outcomes) => outcomes == &[OrderOutcome::Stored],
        Err(error) => panic!("{error}"),
    });
    assert_eq!(desk.events().await.len(), stored.count());
    let last = desk.lines("SELECT document::jsonb ->> 'updated_at' AS line FROM orders").await;
    assert_eq!(last, ["2026-02-01T00:00:59Z"]);
}

/// Two snapshots of one moment are told apart by the numbers of their events.
#[tokio::test]
async fn an_event_is_numbered_when_nobody_else_can_write_its_order_any_more() {
    let desk = Desk::open().await;
    let order = samples(1).remove(0);
    check(&desk.publish("acme", one(&order)).await, &[OrderOutcome::Stored]);
    let pool = desk.database.pool();
    let mut other = pool.get().await.unwrap();
    other.batch_execute("BEGIN; SELECT FROM orders FOR UPDATE").await.unwrap();
    let newer = with(order, |order| order["updated_at"] = json!("2027-01-01T00:00:00Z"));
    let publishing = desk.publish("acme", one(&newer));
    let drawing = async {
        desk.writer_waits().await;
        other.batch_execute("SELECT nextval('outbox_position_seq'); COMMIT").await.unwrap();
    };
    let (answer, ()) = tokio::join!(publishing, drawing);
    check(&answer, &[OrderOutcome::Stored]);
    let positions = desk.lines("SELECT sequence::text AS line FROM outbox ORDER BY sequence").await;
    assert_eq!(positions, ["1", "3"]);
}
