//! Shared state of the dispatcher, the senders and the API handlers.

use std::sync::Arc;
use std::time::Duration;

use domain::access::MerchantId;
use domain::merchant::Interface;
use domain::message_kind::MessageKind;
use merchants::Merchants;
use messaging::{Broker, Exchange, Outbox};
use platform::{
    Clock, MemoryBudget, database::Pool, health::Health, retry::Backoff, shares::Shares,
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::attempt::EndpointClient;
use crate::endpoints::Endpoints;
use crate::metrics::Metrics;
use crate::observer::SettlementObserver;
use crate::outcome::Schedule;
use crate::settings::Settings;
use crate::settled_ids::SettledIds;
use crate::writer::MessageWriter;

/// Listeners of one merchant at a replica. `backhaul listen` is one for each service.
pub(crate) const MAX_LISTENERS_OF_MERCHANT: usize = 5;
/// Listeners of all merchants at a replica.
pub(crate) const MAX_LISTENERS: usize = 50;

/// The default exchange, whose routing keys are names of queues.
pub(crate) fn default_exchange() -> Exchange {
    Exchange(String::new())
}

pub(crate) struct Engine {
    pub(crate) pool: Pool,
    pub(crate) clock: Clock,
    pub(crate) broker: Broker,
    pub(crate) merchants: Arc<Merchants>,
    pub(crate) endpoints: Endpoints,
    pub(crate) endpoint_client: EndpointClient,
    pub(crate) schedule: Schedule,
    pub(crate) inflight_budget: MemoryBudget,
    pub(crate) outbox: Outbox,
    /// Kinds that this service delivers.
    pub(crate) kinds: Vec<MessageKind>,
    pub(crate) settings: Settings,
    /// Timeout of one request of an endpoint check.
    pub(crate) check_timeout: Duration,
    pub(crate) observer: Arc<dyn SettlementObserver>,
    pub(crate) writer: MessageWriter,
    pub(crate) metrics: Metrics,
    /// Wakes the dispatcher when messages may be due.
    pub(crate) wake: Arc<Notify>,
    /// Deliveries that this replica settled.
    pub(crate) settled: SettledIds,
    /// Wakes the replayer when dead letters may be obsolete.
    pub(crate) replayed: Notify,
    /// Requests that wait for messages.
    pub(crate) listeners: Arc<Shares<MerchantId>>,
    pub(crate) health: Health,
}

impl Engine {
    /// Waits until the merchants are loaded: without them no endpoint has a URL or is known to be paused, and
    /// every attempt would fail. Returns false if the process stops.
    pub(crate) async fn wait_for_merchants(&self, stop: &CancellationToken) -> bool {
        stop.run_until_cancelled(self.merchants.loaded()).await.is_some()
    }

    pub(crate) fn is_paused(&self, merchant: &str, kind: MessageKind) -> bool {
        self.paused_state(merchant, kind) == Some(true)
    }

    /// Whether an endpoint is set and not paused.
    pub(crate) fn is_active(&self, merchant: &str, kind: MessageKind) -> bool {
        self.paused_state(merchant, kind) == Some(false)
    }

    /// Returns whether an endpoint is paused, or `None` if it is not set.
    fn paused_state(&self, merchant: &str, kind: MessageKind) -> Option<bool> {
        let merchant = self.merchants.get(&merchant.parse().ok()?)?;
        merchant.endpoints.get(&Interface::Message(kind)).map(|endpoint| endpoint.paused)
    }

    /// Like [`Engine::is_paused`], with the name of the kind.
    pub(crate) fn is_endpoint_paused(&self, merchant: &str, kind: &str) -> bool {
        kind.parse().is_ok_and(|kind| self.is_paused(merchant, kind))
    }

    /// Returns the paused endpoints as two parallel lists: merchants and kinds.
    pub(crate) fn paused(&self) -> (Vec<String>, Vec<String>) {
        let merchants = self.merchants.all();
        let endpoints = merchants.values().flat_map(|merchant| {
            let paused = merchant.endpoints.iter().filter(|(_, endpoint)| endpoint.paused);
            paused.map(|(interface, _)| (merchant.identifier.to_string(), interface.to_string()))
        });
        endpoints.unzip()
    }
}

/// Delays between attempts to reach the broker or the database.
pub(crate) fn reconnect_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(50), Duration::from_secs(2))
}
