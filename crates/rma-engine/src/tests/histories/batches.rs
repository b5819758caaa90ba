//! Reports in one batch.

use std::sync::Arc;

use domain::json::Digest;
use domain::returns::TrackingEvent;
use platform::batching::{BatchHandler as _, BatchResults, Processing};
use serde_json::json;

use super::actions::{Action, Model, Operation};
use super::test_engine::TestEngine;
use crate::error::Error;
use crate::returns::parcels::Reported;
use crate::returns::report_batches::{ReportHandler, ReportJob};

fn report(key: &str, event: TrackingEvent, rma: Option<&str>, number: Option<&str>) -> Reported {
    Reported {
        digest: Digest::of_value(&json!([key, event, rma, number])),
        event_identifier: key.to_owned(),
        event,
        rma_identifier: rma.map(ToOwned::to_owned),
        tracking_number: number.map(ToOwned::to_owned),
        units: None,
        label_url: None,
        label_kind: None,
        occurred_at: None,
        detail: None,
    }
}

/// Processes reports in one transaction.
async fn process(
    engine: &TestEngine,
    model: &Model,
    reports: Vec<Reported>,
) -> BatchResults<String, Error> {
    let app = &engine.app;
    let handler = ReportHandler { clock: app.clock.clone(), messages: app.messages.clone() };
    let merchant = Arc::new(model.merchant.clone());
    let jobs = reports.into_iter().map(|it| ReportJob::new(merchant.clone(), "test", it));
    let jobs: Vec<_> = jobs.collect();
    let jobs: Vec<_> = jobs.iter().collect();
    let mut conn = app.pool.get().await.unwrap();
    conn.transaction(async |conn| handler.process(conn, &jobs, Processing::Batch).await)
        .await
        .unwrap()
}

/// `ok`, the error, or `alone`.
fn words(results: BatchResults<String, Error>) -> Vec<String> {
    let word = |result| match result {
        None => "alone".to_owned(),
        Some(Ok(_)) => "ok".to_owned(),
        Some(Err(error)) => format!("{error}"),
    };
    results.into_iter().map(word).collect()
}

#[tokio::test]
async fn reports_of_one_batch_see_each_other() {
    let engine = TestEngine::open().await;
    let mut model = Model::new(0);
    let (older, newer) = model.begin();
    for operation in [&older, &newer] {
        engine.run(operation, &model).await.unwrap();
    }
    for unit in [1, 2] {
        let action = Action::Return { units: vec![(0, unit)], exchange: false, is_reviewed: false };
        let operation = model.plan(&action).unwrap();
        engine.run(&operation, &model).await.unwrap();
    }
    let returns = engine.returns(&model).await;
    let [first, second] = [0, 1].map(|index| returns[index].rma_identifier.as_str());
    use TrackingEvent::{Delivered, InTransit, Label};
    let results = process(
        &engine,
        &model,
        vec![
            report("1", InTransit, Some(first), Some("1ZX")),
            report("1", InTransit, Some(first), Some("1ZX")),
            report("1", Delivered, Some(first), Some("1ZX")),
            report("2", Delivered, None, Some("1ZX")),
            report("4", Label, Some(second), Some("1ZY")),
        ],
    )
    .await;
    assert_eq!(words(results), ["ok", "alone", "alone", "ok", "ok"]);
    let unknown = vec![report("3", InTransit, Some("unknown"), None)];
    assert_eq!(words(process(&engine, &model, unknown).await), ["alone"]);
    let messages: Vec<_> = engine.sent_messages(&model).await;
    let of_first = messages.iter().filter(|it| it.ordering_key.ends_with(first));
    let sequences: Vec<_> = of_first.map(|it| it.sequence).collect();
    assert_eq!(sequences, [1, 2, 3]);

    let cancel = Operation::Cancel { rma: second.to_owned(), units: None };
    engine.run(&cancel, &model).await.unwrap();
    let before = engine.records(&model).await;
    let results = process(
        &engine,
        &model,
        vec![
            report("1", InTransit, Some(first), Some("1ZX")),
            report("1", Delivered, Some(first), Some("1ZX")),
            report("5", InTransit, Some(second), Some("1ZY")),
            report("6", InTransit, None, Some("1ZY")),
        ],
    )
    .await;
    let words = words(results);
    assert_eq!((&*words[0], &*words[3]), ("ok", "alone"), "{words:?}");
    assert_eq!(words[1], "1 field is not valid", "{words:?}");
    assert!(words[2].contains("canceled"), "{words:?}");
    assert_eq!(engine.records(&model).await, before, "rejected reports changed something");
    engine.close().await;
}
