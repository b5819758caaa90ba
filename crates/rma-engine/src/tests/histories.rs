//! Whatever happens, in whatever order, twice and at the same time, the books are right.
//!
//! A history is a list of rounds; what is in a round happens at once. Each history has a merchant
//! and an order of its own, in one database.

mod actions;
mod desk;
mod invariants;

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::returns::RmaStatus;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use actions::{Action, World};
use desk::Desk;

/// An action and how many callers do it at once.
type Step = (Action, usize);

fn histories() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = (actions::any(), 1..=3_usize);
    proptest::collection::vec(proptest::collection::vec(step, 1..=4), 3..=8)
}

async fn play(desk: &Desk, number: usize, rounds: &[Vec<Step>]) {
    let mut world = World::new(number);
    // Two replicas hear of the order for the first time, and not of the same snapshot.
    let (older, newer) = world.begin();
    let (first, second) = tokio::join!(desk.run(&newer, &world), desk.run(&older, &world));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    let mut done = Vec::new();
    for round in rounds {
        let mut deeds = Vec::new();
        for (action, copies) in round {
            if let Some(deed) = world.plan(action) {
                deeds.extend(std::iter::repeat_n(deed, *copies));
            }
        }
        // The last planned begins first, so that snapshots come out of order.
        deeds.reverse();
        let outcomes =
            futures_util::future::join_all(deeds.iter().map(|it| desk.run(it, &world))).await;
        for (deed, outcome) in deeds.into_iter().zip(outcomes) {
            if desk::accepted(&outcome) {
                done.push(deed);
            }
        }
        world.rmas = desk.returns(&world).await;
        invariants::hold(desk, &world).await;
    }
    let before = desk.books(&world).await;
    for deed in &done {
        // What was accepted is accepted again or too late now; either way nothing changes.
        drop(desk.run(deed, &world).await);
    }
    assert_eq!(desk.books(&world).await, before, "replaying changed something");
}

#[tokio::test]
async fn no_refund_is_lost_between_snapshots_that_come_at_once() {
    let desk = Desk::open().await;
    let mut world = World::new(0);
    let (_, first) = world.begin();
    desk.run(&first, &world).await.unwrap();
    let wanted = Action::Return { units: vec![(0, 1)], exchange: false };
    let wanted = world.plan(&wanted).unwrap();
    desk.run(&wanted, &world).await.unwrap();
    let refund = world.plan(&Action::Refund { line: 0, units: 1, rma: None }).unwrap();
    // The merchant no longer speaks of the refund.
    world.order.refunds.clear();
    let newest = world.plan(&Action::Ship { line: 1, units: 1 }).unwrap();
    desk.project(&[&newest, &refund]).await.unwrap();
    assert_eq!(desk.returns(&world).await[0].status, RmaStatus::Refunded);
    assert_eq!(desk.order(&world).await.0, world.order);
    desk.close().await;
}

#[test]
fn histories_keep_the_books_right() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let desk = runtime.block_on(Desk::open());
    let played = AtomicUsize::new(0);
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&histories(), |rounds| {
        let number = played.fetch_add(1, Ordering::Relaxed);
        runtime.block_on(play(&desk, number, &rounds));
        Ok(())
    });
    runtime.block_on(desk.close());
    outcome.unwrap();
}
