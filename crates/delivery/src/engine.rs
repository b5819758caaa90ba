//! What the engine's parts share, and the words a message carries through the broker.

use std::sync::Arc;
use std::time::Duration;

use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Exchange, Outbox};
use platform::{Clock, database::Pool};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::attempt::EndpointClient;
use crate::endpoints::Endpoints;
use crate::metrics::Metrics;
use crate::observer::SettlementObserver;
use crate::settings::Settings;

/// Headers of a message on a work queue; a dead letter has more, see `letters`.
pub(crate) mod header {
    pub(crate) const DELIVERY: &str = "delivery-id";
    pub(crate) const MERCHANT: &str = "merchant";
    pub(crate) const EVENT: &str = "event";
    pub(crate) const SEQUENCE: &str = "sequence";
    pub(crate) const ROUND: &str = "round";
    pub(crate) const ATTEMPT: &str = "attempt";
    /// Set when another copy of the message may be about.
    pub(crate) const RECALLED: &str = "recalled";
    /// When it is recalled, and a lease after it was queued.
    pub(crate) const LEASE_UNTIL: &str = "lease-until";
    pub(crate) const TRACEPARENT: &str = "traceparent";
}

/// The broker's default exchange, where a routing key is a queue's name.
pub(crate) fn default_exchange() -> Exchange {
    Exchange(String::new())
}

/// What dispatcher, senders and operators' handlers share.
pub(crate) struct Engine {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) broker: Broker,
    pub(crate) merchants: Arc<Merchants>,
    pub(crate) endpoints: Endpoints,
    pub(crate) endpoint_client: EndpointClient,
    pub(crate) outbox: Outbox,
    /// What this service delivers.
    pub(crate) kinds: Vec<MessageKind>,
    pub(crate) settings: Settings,
    /// The longest that one sample of an endpoint check may take.
    pub(crate) check_deadline: Duration,
    pub(crate) witness: Arc<dyn SettlementObserver>,
    pub(crate) metrics: Metrics,
    /// Wakes the dispatcher: there may be something to send.
    pub(crate) wake: Arc<Notify>,
    /// Wakes the replayer: a letter may be a leftover now.
    pub(crate) replayed: Notify,
}

impl Engine {
    /// Waits until the merchants are known, and returns whether they are: until then nobody looks
    /// paused, and nobody has an address.
    pub(crate) async fn knows_merchants(&self, stop: &CancellationToken) -> bool {
        let mut changes = self.merchants.changes();
        tokio::select! {
            () = stop.cancelled() => false,
            known = changes.wait_for(|changes| *changes > 0) => known.is_ok(),
        }
    }

    /// Whether its merchant paused this endpoint.
    pub(crate) fn is_paused(&self, merchant: &str, kind: MessageKind) -> bool {
        let known = merchant.parse().ok().and_then(|id| self.merchants.get(&id));
        let interface = Interface::Message(kind);
        known.is_some_and(|known| known.endpoints.get(&interface).is_some_and(|it| it.paused))
    }

    /// Endpoints that their merchants paused, as merchants and kinds.
    pub(crate) fn paused(&self) -> (Vec<String>, Vec<String>) {
        let merchants = self.merchants.all();
        let endpoints = merchants.values().flat_map(|merchant| {
            let paused = merchant.endpoints.iter().filter(|(_, endpoint)| endpoint.paused);
            paused.map(|(interface, _)| (merchant.identifier.to_string(), interface.to_string()))
        });
        endpoints.unzip()
    }
}

/// The pauses between tries when the broker or the database is away.
pub(crate) fn patience() -> platform::retry::Backoff {
    platform::retry::Backoff::new(Duration::from_millis(50), Duration::from_secs(2))
}
