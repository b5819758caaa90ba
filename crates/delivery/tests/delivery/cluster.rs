//! A broker cluster of three nodes, one of which is killed and restarted.

use std::time::Duration;

use domain::message_kind::MessageKind;
use testkit::{Cluster, Database, Namespace, eventually};

use crate::faults::{BALANCE, append_ordered, repeats};
use crate::ordering_keys::nothing_overtook;
use crate::test_app::{TestApp, migrations};

const LONG: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn no_message_is_lost_when_a_broker_node_is_killed_and_restarted() {
    let cluster = Cluster::start().await;
    let namespace = Namespace::create_on(cluster.amqp_url(), cluster.rabbitmq_api_url());
    let short = [
        ("DELIVERY__LEASE", "20s"),
        ("DELIVERY__ATTEMPT_TIMEOUT", "5s"),
        ("DELIVERY__MAX_WINDOW", "64"),
    ];
    let app = TestApp::start_on(Database::create(migrations()).await, namespace, &short).await;
    append_ordered(&app, 0, 5).await;
    eventually("some have arrived", LONG, async || {
        (!app.received().await.is_empty()).then_some(())
    })
    .await;
    let queue = format!("{}.{}", app.namespace.name, MessageKind::Rma.queue());
    eventually("the queue is on all nodes", LONG, async || {
        (cluster.members(&queue).await == 3).then_some(())
    })
    .await;
    // The first node has the first connection and leads the first queues.
    tokio::task::block_in_place(|| cluster.kill(0));
    append_ordered(&app, 5, 10).await;
    eventually("two nodes carry on", LONG, async || {
        (app.received().await.len() > 600).then_some(())
    })
    .await;
    tokio::task::block_in_place(|| cluster.start_again(0));
    append_ordered(&app, 10, 15).await;
    app.wait_until_settled(LONG).await;
    assert_eq!(app.count(BALANCE).await, 0);
    let arrivals = app.received().await;
    assert_eq!(arrivals.len() - repeats(&arrivals), 1500);
    assert!(repeats(&arrivals) <= 2 * 64, "{} repeats", repeats(&arrivals));
    nothing_overtook(&arrivals);
    app.stop().await;
}
