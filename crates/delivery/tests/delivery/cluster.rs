//! A broker of three nodes, one of which is killed and comes back.

use std::time::Duration;

use domain::message_kind::MessageKind;
use testkit::{Cluster, Database, Namespace, eventually};

use crate::faults::{BALANCE, append_lanes, repeats};
use crate::ordering_keys::nothing_overtook;
use crate::stage::{Stage, migrations};

const LONG: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_killed_and_comes_back_loses_no_message() {
    let cluster = Cluster::start().await;
    let namespace = Namespace::create_on(cluster.amqp_url(), cluster.rabbitmq_api_url());
    let short = [("DELIVERY__LEASE", "20s"), ("DELIVERY__DEADLINE", "5s")];
    let stage = Stage::set(Database::create(migrations()).await, namespace, &short).await;
    append_lanes(&stage, 0, 5).await;
    eventually("some have arrived", LONG, async || {
        (!stage.arrivals().await.is_empty()).then_some(())
    })
    .await;
    let queue = format!("{}.{}", stage.namespace.name, MessageKind::Rma.queue());
    eventually("the queue is on all nodes", LONG, async || {
        (cluster.members(&queue).await == 3).then_some(())
    })
    .await;
    // The first node took the first connection and leads the first queues.
    tokio::task::block_in_place(|| cluster.kill(0));
    append_lanes(&stage, 5, 10).await;
    eventually("two nodes carry on", LONG, async || {
        (stage.arrivals().await.len() > 600).then_some(())
    })
    .await;
    tokio::task::block_in_place(|| cluster.revive(0));
    append_lanes(&stage, 10, 15).await;
    stage.settled(LONG).await;
    assert_eq!(stage.number(BALANCE).await, 0);
    let arrivals = stage.arrivals().await;
    assert_eq!(arrivals.len() - repeats(&arrivals), 1500);
    assert!(repeats(&arrivals) <= 2 * 64, "{} repeats", repeats(&arrivals));
    nothing_overtook(&arrivals);
    stage.leave().await;
}
