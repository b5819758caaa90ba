//! Handlers for the events of other services. Each event is handled in the transaction that adds it
//! to the inbox.

use std::marker::PhantomData;

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::delivery::{DeliveryDead, EndpointHealthChanged, EndpointPaused};
use domain::erasure::ShopperErased;
use domain::event::Event;
use domain::exchange::{ExchangeFailed, ExchangePlaced, ExchangeUndeliverable};
use domain::order::{OrderLine, OrderStored, OrderStoredInBulk};
use domain::warehouse::UnitReceived;
use messaging::{Broker, Envelope, HandleError, Handler, Outbox, consume, remove_erased_events};
use platform::{Clock, MAX_BATCH_BYTES, Process, Service as _};

use crate::erasing::{ErasedReceipts, ErasedSnapshots};
use crate::messages::Messages;
use crate::notices::NewFacts;
use crate::projection;
use crate::projection::order::Snapshot;
use crate::returns::receiving;
use crate::{App, erasing, exchanges};

/// Prefetch limit for exchange events, each of which may name a thousand units.
const MAX_EXCHANGE_PREFETCH: u16 = 16;

/// Starts the consumers.
pub(crate) fn start(app: &App, broker: &Broker, process: &Process) {
    let deps = || HandlerDeps {
        messages: app.messages.clone(),
        outbox: app.outbox.clone(),
        clock: app.clock.clone(),
    };
    consume(broker, App::NAME, process, Orders::<OrderStored>(deps(), PhantomData));
    consume(broker, App::NAME, process, Orders::<OrderStoredInBulk>(deps(), PhantomData));
    consume(broker, App::NAME, process, Receipts(deps()));
    consume(broker, App::NAME, process, PlacedExchanges(deps()));
    consume(broker, App::NAME, process, FailedExchanges(deps()));
    consume(broker, App::NAME, process, UndeliverableExchanges(deps()));
    consume(broker, App::NAME, process, Erasures(deps()));
    consume(broker, App::NAME, process, DeadDeliveries(app.clock.clone()));
    consume(broker, App::NAME, process, HealthOfEndpoints(app.clock.clone()));
    consume(broker, App::NAME, process, PausedEndpoints(app.clock.clone()));
    remove_erased_events(broker, App::NAME, process, ErasedSnapshots::<OrderStored>(PhantomData));
    remove_erased_events(
        broker,
        App::NAME,
        process,
        ErasedSnapshots::<OrderStoredInBulk>(PhantomData),
    );
    remove_erased_events(broker, App::NAME, process, ErasedReceipts);
}

/// Sorts events by return, because every transaction locks returns in that order. The sort is
/// stable, so events of one return stay in order.
fn by_return<'e, E>(
    events: &[&'e Envelope<E>],
    named: fn(&E) -> (&MerchantId, &String),
) -> Vec<&'e E> {
    let mut events: Vec<_> = events.iter().map(|event| &event.data).collect();
    events.sort_by(|a, b| named(a).cmp(&named(b)));
    events
}

struct HandlerDeps {
    messages: Messages,
    outbox: Outbox,
    clock: Clock,
}

impl HandlerDeps {
    /// Messages are written in the version that the merchant's endpoint has.
    async fn ready(&self) {
        self.messages.deliveries.merchants_loaded().await;
    }
}

/// The stored units and returns that a batch of orders may read for each order, unless it is a batch of the queue
/// for bulk. An order of [`OrderStored`] has few units, but an earlier snapshot may have had ten thousand, and its
/// refunds may concern returns of megabytes. Such orders move to the queue for bulk, so that those of other
/// merchants do not wait for them.
const MAX_STORED_BYTES: usize = 256 * 1024;

/// Projects orders from the queue of their event.
struct Orders<E>(HandlerDeps, PhantomData<fn(E)>);

impl<E: Event + AsRef<OrderStored>> Handler for Orders<E> {
    type Event = E;

    /// Approximate bytes of the new shipped units. An order of a few kilobytes may have ten thousand
    /// units, and each takes hundreds of bytes plus its identifiers. The size of stored units is
    /// limited when they are read.
    const MAX_BATCH_COST: usize = 64_000_000;

    fn cost(stored: &E) -> usize {
        let order = &stored.as_ref().order;
        let of_line = |line: &OrderLine| {
            let units = usize::try_from(line.quantity_shipped).unwrap_or_default();
            units * (320 + order.identifier.len() + line.identifier.len())
        };
        order.items.iter().map(of_line).sum()
    }

    fn queue_for_large() -> Option<&'static str> {
        (E::TYPE == OrderStored::TYPE).then_some(OrderStoredInBulk::TYPE)
    }

    async fn ready(&self) {
        self.0.ready().await;
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<E>],
    ) -> Result<(), HandleError> {
        let HandlerDeps { messages, clock, .. } = &self.0;
        let max_bytes = match events.len() {
            1 if Self::queue_for_large().is_none() => usize::MAX,
            _ if Self::queue_for_large().is_none() => MAX_BATCH_BYTES,
            events => MAX_BATCH_BYTES.min(events * MAX_STORED_BYTES),
        };
        let stored = erasing::without_erased(conn, events).await?;
        let snapshots = events.iter().zip(&stored).map(|(event, stored)| Snapshot {
            event: stored,
            sequence: event.sequence_number(),
            stored_at: event.time,
        });
        Ok(projection::project(conn, messages, snapshots, max_bytes, clock.now()).await?)
    }
}

struct Receipts(HandlerDeps);

impl Handler for Receipts {
    type Event = UnitReceived;

    async fn ready(&self) {
        self.0.ready().await;
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<UnitReceived>],
    ) -> Result<(), HandleError> {
        let HandlerDeps { messages, clock, .. } = &self.0;
        for event in by_return(events, |it| (&it.merchant, &it.rma_identifier)) {
            receiving::record_unit(conn, messages, event, clock.now()).await?;
        }
        Ok(())
    }
}

struct PlacedExchanges(HandlerDeps);

impl Handler for PlacedExchanges {
    type Event = ExchangePlaced;

    const MAX_PREFETCH: u16 = MAX_EXCHANGE_PREFETCH;

    async fn ready(&self) {
        self.0.ready().await;
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ExchangePlaced>],
    ) -> Result<(), HandleError> {
        let HandlerDeps { messages, outbox, clock } = &self.0;
        for event in by_return(events, |it| (&it.merchant, &it.rma_identifier)) {
            exchanges::record_placed(conn, messages, outbox, event, clock.now()).await?;
        }
        Ok(())
    }
}

struct FailedExchanges(HandlerDeps);

impl Handler for FailedExchanges {
    type Event = ExchangeFailed;

    const MAX_PREFETCH: u16 = MAX_EXCHANGE_PREFETCH;

    async fn ready(&self) {
        self.0.ready().await;
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ExchangeFailed>],
    ) -> Result<(), HandleError> {
        let HandlerDeps { messages, clock, .. } = &self.0;
        for event in by_return(events, |it| (&it.merchant, &it.rma_identifier)) {
            exchanges::record_failed(conn, messages, event, clock.now()).await?;
        }
        Ok(())
    }
}

struct UndeliverableExchanges(HandlerDeps);

impl Handler for UndeliverableExchanges {
    type Event = ExchangeUndeliverable;

    const MAX_PREFETCH: u16 = MAX_EXCHANGE_PREFETCH;

    async fn ready(&self) {
        self.0.ready().await;
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ExchangeUndeliverable>],
    ) -> Result<(), HandleError> {
        let HandlerDeps { messages, clock, .. } = &self.0;
        for event in by_return(events, |it| (&it.merchant, &it.rma_identifier)) {
            exchanges::record_undeliverable(conn, messages, event, clock.now()).await?;
        }
        Ok(())
    }
}

struct Erasures(HandlerDeps);

impl Handler for Erasures {
    type Event = ShopperErased;

    /// Each event may be about a hundred orders.
    const MAX_BATCH_COST: usize = 1;

    fn cost(_: &ShopperErased) -> usize {
        1
    }

    async fn ready(&self) {
        self.0.ready().await;
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ShopperErased>],
    ) -> Result<(), HandleError> {
        let HandlerDeps { outbox, clock, .. } = &self.0;
        for event in events {
            erasing::erase_shopper(conn, outbox, event, clock.now()).await?;
        }
        Ok(())
    }
}

/// The dead deliveries of all services, for notices to their merchants.
struct DeadDeliveries(Clock);

impl Handler for DeadDeliveries {
    type Event = DeliveryDead;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<DeliveryDead>],
    ) -> Result<(), HandleError> {
        let mut facts = NewFacts::default();
        events.iter().for_each(|event| facts.add_dead(&event.data));
        Ok(facts.record(conn, self.0.now()).await?)
    }
}

/// Failures and recoveries of endpoints, for notices to their merchants.
struct HealthOfEndpoints(Clock);

impl Handler for HealthOfEndpoints {
    type Event = EndpointHealthChanged;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<EndpointHealthChanged>],
    ) -> Result<(), HandleError> {
        let mut facts = NewFacts::default();
        events.iter().for_each(|event| facts.add_health(&event.data));
        Ok(facts.record(conn, self.0.now()).await?)
    }
}

/// Endpoints that were paused, for notices to their merchants.
struct PausedEndpoints(Clock);

impl Handler for PausedEndpoints {
    type Event = EndpointPaused;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<EndpointPaused>],
    ) -> Result<(), HandleError> {
        let mut facts = NewFacts::default();
        events.iter().for_each(|event| facts.add_paused(&event.data));
        Ok(facts.record(conn, self.0.now()).await?)
    }
}
