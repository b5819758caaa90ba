//! Property test: invariants hold for any sequence of concurrent and repeated actions.
//!
//! A history is a list of rounds; the actions of a round run concurrently. Each history has its own
//! merchant and order, and all share one database.

mod actions;
mod batches;
mod invariants;
mod test_engine;

use std::sync::atomic::{AtomicUsize, Ordering};

use domain::returns::RmaStatus;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use actions::{Action, Model, Operation};
use test_engine::TestEngine;

/// An action and the number of callers that run it concurrently.
type Step = (Action, usize);

fn histories() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = (actions::any(), 1..=3_usize);
    proptest::collection::vec(proptest::collection::vec(step, 1..=4), 3..=8)
}

async fn run_history(app: &TestEngine, number: usize, rounds: &[Vec<Step>]) {
    let mut model = Model::new(number);
    app.add_merchant(&model).await;
    // Two replicas handle the first two snapshots of the order at the same time.
    let (older, newer) = model.begin();
    let (first, second) = tokio::join!(app.run(&newer, &model), app.run(&older, &model));
    assert!(first.is_ok() && second.is_ok(), "{first:?} {second:?}");
    let mut done = Vec::new();
    for round in rounds {
        let mut operations = Vec::new();
        for (action, copies) in round {
            if let Some(operation) = model.plan(action) {
                operations.extend(std::iter::repeat_n(operation, *copies));
            }
        }
        // The last action starts first, so that snapshots come out of order.
        operations.reverse();
        let outcomes =
            futures_util::future::join_all(operations.iter().map(|it| app.run(it, &model))).await;
        for (operation, outcome) in operations.into_iter().zip(outcomes) {
            if test_engine::accepted(&outcome) {
                done.push(operation);
            }
        }
        model.rmas = app.returns(&model).await;
        invariants::check(app, &model).await;
    }
    let before = app.records(&model).await;
    // A deadline that passes later, or a waiver of all units, is about the exchanges since.
    let is_repeatable =
        |it: &&Operation| !matches!(it, Operation::Expire { .. } | Operation::Waive { .. });
    for operation in done.iter().filter(is_repeatable) {
        // An accepted action is accepted again or too late now; either way nothing changes.
        drop(app.run(operation, &model).await);
    }
    assert_eq!(app.records(&model).await, before, "replaying changed something");
}

#[tokio::test]
async fn no_refund_is_lost_between_snapshots_of_one_batch() {
    let app = TestEngine::open().await;
    let mut model = Model::new(0);
    let (_, first) = model.begin();
    app.run(&first, &model).await.unwrap();
    let wanted = Action::Return { units: vec![(0, 1)], exchange: false, is_reviewed: false };
    let wanted = model.plan(&wanted).unwrap();
    app.run(&wanted, &model).await.unwrap();
    let refund = model.plan(&Action::Refund { line: 0, units: 1, rma: None }).unwrap();
    // The newest snapshot omits the refund.
    model.order.refunds.clear();
    let newest = model.plan(&Action::Ship { line: 1, units: 1 }).unwrap();
    app.project(&[&newest, &refund]).await.unwrap();
    assert_eq!(app.returns(&model).await[0].status, RmaStatus::Refunded);
    assert_eq!(app.order(&model).await.0, model.order);
    app.close().await;
}

#[test]
fn invariants_hold_in_every_history() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let app = runtime.block_on(TestEngine::open());
    let histories_run = AtomicUsize::new(0);
    let config = Config { cases: testkit::cases(), failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&histories(), |rounds| {
        let number = histories_run.fetch_add(1, Ordering::Relaxed);
        runtime.block_on(run_history(&app, number, &rounds));
        Ok(())
    });
    runtime.block_on(app.close());
    outcome.unwrap();
}
