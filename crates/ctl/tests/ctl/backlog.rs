//! `backhaul backlog` against auth and a delivering service.

use serde_json::json;

use crate::app::TestApp;

#[tokio::test(flavor = "multi_thread")]
async fn the_backlogs_of_all_services_are_one_table() {
    let app = TestApp::with_delivery().await;
    let backlog = app.json("backlog --json").await;
    let services = backlog["services"].as_array().unwrap();
    let names: Vec<_> = services.iter().map(|service| &service["service"]).collect();
    assert_eq!(names, ["auth", "rma-engine"]);
    assert_eq!(services[0]["queues"], json!([]));
    assert_eq!(services[1]["broker"], "available");
    let queues = services[1]["queues"].as_array().unwrap();
    let work_queue = format!("{}.notify.rma", app.namespace().name);
    let work_queue = queues.iter().find(|queue| queue["queue"] == work_queue).unwrap();
    assert_eq!((&work_queue["depth"], &work_queue["dead_letters"]), (&json!(0), &json!(0)));

    let table = app.text("backlog").await;
    let first: Vec<Vec<_>> =
        table.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    assert_eq!(first[..3], [["SERVICE", "QUEUE"], ["auth", "outbox"], ["rma-engine", "outbox"]]);

    // A service that does not respond does not hide the others.
    app.set("ORDERS_URL", "http://127.0.0.1:1");
    let output = app.backhaul("backlog").await;
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), table.lines().count());
    app.stop().await;
}
