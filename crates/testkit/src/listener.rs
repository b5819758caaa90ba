//! Reads the queues of other services, as their consumers would.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging::{BrokerConnection, Subscription, Topology};
use platform::Tasks;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{Namespace, eventually};

type Received = Arc<Mutex<Vec<(&'static str, Value)>>>;

/// The events in some queues. It consumes them, so it sees each of them once, unlike [`Namespace::peek`], which
/// returns an event to its queue only a few times.
#[derive(Clone)]
pub struct Listener {
    namespace: Arc<Namespace>,
    queues: &'static [&'static str],
    received: Received,
}

impl Listener {
    /// Listens until the runtime ends. The queues exist already.
    pub async fn start(namespace: Arc<Namespace>, queues: &'static [&'static str]) -> Self {
        let received = Received::default();
        let tasks = Tasks::default();
        let topology = Topology::empty(&namespace.name);
        let url = namespace.settings().url;
        let connection = BrokerConnection::start(&url, &topology, "listener", &tasks);
        for queue in queues.iter().copied() {
            let name = topology.qualified(queue);
            let subscription = Subscription::open(&connection, &name, 1000).await.unwrap();
            let received = received.clone();
            tasks.spawn("listener", |_stop| listen(subscription, queue, received));
        }
        Self { namespace, queues, received }
    }

    /// The events in a queue so far, the oldest first.
    pub fn events(&self, queue: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        received.iter().filter(|(of, _)| *of == queue).map(|(_, event)| event.clone()).collect()
    }

    /// Waits until all events are read that are in the queues now.
    pub async fn catch_up(&self) {
        let marker = json!(Uuid::new_v4());
        for queue in self.queues {
            self.namespace.publish_raw(queue, &marker.to_string()).await;
        }
        eventually("the queues are read", Duration::from_secs(300), async || {
            let is_read = |queue: &&str| self.events(queue).contains(&marker);
            self.queues.iter().all(is_read).then_some(())
        })
        .await;
    }
}

async fn listen(mut subscription: Subscription, queue: &'static str, received: Received) {
    // The subscription ends with the broker or with the test.
    while let Ok(batch) = subscription.next(1000).await {
        let Some(last) = batch.last() else { continue };
        let events = batch.iter().map(|it| (queue, serde_json::from_slice(&it.body).unwrap()));
        received.lock().unwrap().extend(events);
        if subscription.ack_up_to(last.delivery_tag).await.is_err() {
            return;
        }
    }
}
