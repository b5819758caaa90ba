//! Property test: invariants hold for any sequence of concurrent and repeated actions.
//!
//! A history is a list of rounds; the actions of a round run concurrently. Each history has its own
//! merchant and order, and all share one database.

mod actions;
mod invariants;
mod test_engine;

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::returns::RmaStatus;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use actions::{Action, World};
use test_engine::TestEngine;

/// An action and the number of callers that run it concurrently.
type Step = (Action, usize);

fn histories() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = (actions::any(), 1..=3_usize);
    proptest::collection::vec(proptest::collection::vec(step, 1..=4), 3..=8)
}

async fn play(app: &TestEngine, number: usize, rounds: &[Vec<Step>]) {
    let mut world = World::new(number);
    // Two replicas handle the first two snapshots of the order at the same time.
    let (older, newer) = world.begin();
    let (first, second) = tokio::join!(app.run(&newer, &world), app.run(&older, &world));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    let mut done = Vec::new();
    for round in rounds {
        let mut operations = Vec::new();
        for (action, copies) in round {
            if let Some(operation) = world.plan(action) {
                operations.extend(std::iter::repeat_n(operation, *copies));
            }
        }
        // The last action starts first, so that snapshots come out of order.
        operations.reverse();
        let outcomes =
            futures_util::future::join_all(operations.iter().map(|it| app.run(it, &world))).await;
        for (operation, outcome) in operations.into_iter().zip(outcomes) {
            if test_engine::accepted(&outcome) {
                done.push(operation);
            }
        }
        world.rmas = app.returns(&world).await;
        invariants::hold(app, &world).await;
    }
    let before = app.records(&world).await;
    for operation in &done {
        // An accepted action is accepted again or too late now; either way nothing changes.
        drop(app.run(operation, &world).await);
    }
    assert_eq!(app.records(&world).await, before, "replaying changed something");
}

#[tokio::test]
async fn no_refund_is_lost_between_snapshots_of_one_batch() {
    let app = TestEngine::open().await;
    let mut world = World::new(0);
    let (_, first) = world.begin();
    app.run(&first, &world).await.unwrap();
    let wanted = Action::Return { units: vec![(0, 1)], exchange: false };
    let wanted = world.plan(&wanted).unwrap();
    app.run(&wanted, &world).await.unwrap();
    let refund = world.plan(&Action::Refund { line: 0, units: 1, rma: None }).unwrap();
    // The newest snapshot omits the refund.
    world.order.refunds.clear();
    let newest = world.plan(&Action::Ship { line: 1, units: 1 }).unwrap();
    app.project(&[&newest, &refund]).await.unwrap();
    assert_eq!(app.returns(&world).await[0].status, RmaStatus::Refunded);
    assert_eq!(app.order(&world).await.0, world.order);
    app.close().await;
}

#[test]
fn invariants_hold_in_every_history() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let app = runtime.block_on(TestEngine::open());
    let played = AtomicUsize::new(0);
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&histories(), |rounds| {
        let number = played.fetch_add(1, Ordering::Relaxed);
        runtime.block_on(play(&app, number, &rounds));
        Ok(())
    });
    runtime.block_on(app.close());
    outcome.unwrap();
}
