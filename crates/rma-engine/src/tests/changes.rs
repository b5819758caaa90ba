//! The list of returns in the order of their changes.

use std::collections::HashMap;

use chrono::TimeDelta;
use futures_util::future::{join, join_all};

use super::moving::report;
use super::projecting::order;
use super::*;

/// A copy of the returns of a merchant that follows their changes.
#[derive(Default)]
struct Mirror {
    /// The last `next` or `resume`.
    after: String,
    returns: HashMap<String, Value>,
    /// Identifiers in the order in which they were listed.
    listed: Vec<String>,
}

impl Mirror {
    /// Reads all pages with two returns each.
    async fn read(&mut self, app: &TestApp, merchant: &str) {
        loop {
            let path = "/v1/returns?updated_from=2020-01-01T00:00:00Z&limit=2";
            let (status, page) = app.get(&format!("{path}{}", self.after), merchant).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            for listed in page["returns"].as_array().unwrap() {
                let name = listed["rma_identifier"].as_str().unwrap().to_owned();
                self.listed.push(name.clone());
                self.returns.insert(name, listed.clone());
            }
            let next = page["next"].as_str();
            let after = next.or(page["resume"].as_str()).unwrap();
            self.after = format!("&after={after}");
            if next.is_none() {
                return;
            }
        }
    }

    /// The identifiers that were listed since the last call.
    fn take_listed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.listed)
    }
}

/// Starts returns of new orders.
async fn start(app: &TestApp, names: &[&str]) -> Vec<String> {
    let mut rmas = Vec::new();
    for name in names {
        app.store("acme", &order(name, 1)).await;
        rmas.push(app.start_return(&refund_of(name, &[1])).await);
    }
    rmas
}

async fn scan(app: &TestApp, rma: &str, event: &str) {
    let report = report(&format!("{rma}-{event}"), event, Some(rma), Some("1Z9"));
    assert_eq!(app.carrier(&report).await.0, StatusCode::OK);
}

#[tokio::test]
async fn each_change_lists_its_return_once() {
    // Other tests hold transactions open, before which the list would end.
    let app = TestApp::alone().await;
    let rmas = start(&app, &["A", "B", "C"]).await;
    let mut mirror = Mirror::default();
    mirror.read(&app, "acme").await;
    assert_eq!(mirror.take_listed(), rmas);
    mirror.read(&app, "acme").await;
    assert!(mirror.take_listed().is_empty());
    scan(&app, &rmas[0], "label").await;
    scan(&app, &rmas[1], "label").await;
    scan(&app, &rmas[0], "in_transit").await;
    mirror.read(&app, "acme").await;
    assert_eq!(mirror.take_listed(), [rmas[1].clone(), rmas[0].clone()]);
    let tracking = &mirror.returns[&rmas[0]]["units"][0]["package_tracking_status"];
    assert_eq!(tracking, "TRANSIT");
    let mut foreign = Mirror::default();
    foreign.read(&app, "rival").await;
    assert!(foreign.take_listed().is_empty());
}

#[tokio::test]
async fn a_list_of_changes_begins_and_ends_at_its_times() {
    let app = TestApp::alone().await;
    let rmas = start(&app, &["A", "B"]).await;
    let listed = async |filter: String| {
        let (status, page) = app.get(&format!("/v1/returns?{filter}"), "acme").await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let returns = page["returns"].as_array().unwrap().iter();
        let names: Vec<_> = returns.map(|it| it["rma_identifier"].clone()).collect();
        (names, page.get("resume").is_some())
    };
    let changed_at = app.get("/v1/returns?order_identifier=B", "acme").await.1;
    let changed_at = changed_at["returns"][0]["changed_at"].as_str().unwrap().to_owned();
    let second: platform::Timestamp = changed_at.parse().unwrap();
    let behind = (second + TimeDelta::seconds(60)).to_rfc3339().replace('+', "%2B");
    let all = "updated_from=2020-01-01T00:00:00Z";
    let [a, b] = [json!(rmas[0]), json!(rmas[1])];
    assert_eq!(listed(format!("updated_from={changed_at}")).await, (vec![b.clone()], true));
    assert_eq!(listed(format!("{all}&updated_to={changed_at}")).await, (vec![a.clone()], false));
    assert_eq!(listed(format!("updated_to={changed_at}")).await, (vec![a.clone()], false));
    assert_eq!(listed(format!("updated_from={behind}")).await, (vec![], true));
    assert_eq!(listed(format!("{all}&work_list=not_sent")).await, (vec![a, b], true));
    assert_eq!(listed(format!("{all}&return_reason=OTHER")).await, (vec![], true));
    let newest = app.get("/v1/returns?limit=1", "acme").await.1["next"].clone();
    let newest = newest.as_str().unwrap();
    let of_change = app.get(&format!("/v1/returns?{all}&limit=1"), "acme").await.1["next"].clone();
    let of_change = of_change.as_str().unwrap();
    for query in [
        format!("{all}&after={newest}"),
        format!("after={of_change}"),
        format!("{all}&order_identifier=A"),
        format!("{all}&rma_identifier={}", rmas[0]),
        "updated_from=yesterday".to_owned(),
    ] {
        let (status, _) = app.get(&format!("/v1/returns?{query}"), "acme").await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
    }
}

/// A transaction may commit after a later one. The list ends before both until then.
#[tokio::test]
async fn a_change_that_commits_late_is_not_missed() {
    let app = TestApp::alone().await;
    let rmas = start(&app, &["A", "B"]).await;
    let mut mirror = Mirror::default();
    mirror.read(&app, "acme").await;
    assert_eq!(mirror.take_listed(), rmas);
    let mut late = app.pool.get().await.unwrap();
    let change = format!(
        "BEGIN; INSERT INTO timeline (merchant, rma_identifier, at, actor, event, detail) \
         VALUES ('acme', '{}', now(), 'test', 'note', '{{}}')",
        rmas[0]
    );
    late.batch_execute(&change).await.unwrap();
    scan(&app, &rmas[1], "label").await;
    mirror.read(&app, "acme").await;
    assert!(mirror.take_listed().is_empty());
    late.batch_execute("COMMIT").await.unwrap();
    mirror.read(&app, "acme").await;
    assert_eq!(mirror.take_listed(), rmas);
    mirror.read(&app, "acme").await;
    assert!(mirror.take_listed().is_empty());
}

#[tokio::test]
async fn a_copy_is_complete_while_returns_change() {
    const EVENTS: [&str; 5] = ["label", "accepted", "in_transit", "failure", "delivered"];
    let app = TestApp::alone().await;
    let rmas = start(&app, &["A", "B", "C", "D", "E"]).await;
    let change = join_all(rmas.iter().map(async |rma: &String| {
        for event in EVENTS {
            scan(&app, rma, event).await;
        }
    }));
    let mut mirror = Mirror::default();
    let follow = async {
        for _ in 0..20 {
            mirror.read(&app, "acme").await;
        }
    };
    join(change, follow).await;
    mirror.read(&app, "acme").await;
    let listed = mirror.take_listed();
    assert_eq!(mirror.returns.len(), rmas.len());
    for rma in &rmas {
        let shown = app.show(rma).await;
        assert_eq!(mirror.returns[rma]["units"], shown["units"]);
        // The creation and the events.
        let times = listed.iter().filter(|it| *it == rma).count();
        assert!((1..=EVENTS.len() + 1).contains(&times), "{times} times");
    }
}
