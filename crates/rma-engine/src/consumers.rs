//! What other services say. Each event is handled in the transaction that remembers it.

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::exchange::{ExchangeFailed, ExchangePlaced};
use domain::order::{OrderLine, OrderStored};
use domain::warehouse::UnitReceived;
use messaging::{Broker, Envelope, HandleError, Handler, consume};
use platform::{Clock, Process, Service as _};

use crate::projection::{self, Snapshot};
use crate::{App, exchanges, receiving};

/// So many events about exchanges are held at once: each may name a thousand units.
const MOST_EXCHANGES: u16 = 16;

/// Begins to listen.
pub(crate) fn start(app: &App, broker: &Broker, process: &Process) {
    let ears = || Ears { deliveries: app.deliveries.clone(), clock: app.clock.clone() };
    consume(broker, App::NAME, process, Orders(ears()));
    consume(broker, App::NAME, process, Receipts(ears()));
    consume(broker, App::NAME, process, PlacedExchanges(ears()));
    consume(broker, App::NAME, process, FailedExchanges(ears()));
}

/// Everyone locks returns in the order of their names; what concerns one return stays in order.
fn by_return<'e, E>(
    events: &[&'e Envelope<E>],
    named: fn(&E) -> (&MerchantId, &String),
) -> Vec<&'e E> {
    let mut events: Vec<_> = events.iter().map(|event| &event.data).collect();
    events.sort_by(|a, b| named(a).cmp(&named(b)));
    events
}

/// What every handler needs.
struct Ears {
    deliveries: Deliveries,
    clock: Clock,
}

struct Orders(Ears);

impl Handler for Orders {
    type Event = OrderStored;

    /// About the bytes of their units: an order of a few kilobytes may have ten thousand, and each
    /// takes hundreds of bytes, and its names, while it is put on the ledger. What is there already
    /// is weighed when it is read.
    const MAX_BATCH_COST: usize = 64_000_000;

    fn cost(stored: &OrderStored) -> usize {
        let order = &stored.order;
        let of_line = |line: &OrderLine| {
            let units = usize::try_from(line.quantity_shipped).unwrap_or_default();
            units * (320 + order.identifier.len() + line.identifier.len())
        };
        order.items.iter().map(of_line).sum()
    }

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<OrderStored>],
    ) -> Result<(), HandleError> {
        let Ears { deliveries, clock } = &self.0;
        let snapshots = events
            .iter()
            .map(|event| Snapshot { stored: &event.data, sequence: event.sequence_number() });
        Ok(projection::project(conn, deliveries, snapshots, clock.now()).await?)
    }
}

struct Receipts(Ears);

impl Handler for Receipts {
    type Event = UnitReceived;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<UnitReceived>],
    ) -> Result<(), HandleError> {
        let Ears { deliveries, clock } = &self.0;
        for event in by_return(events, |it| (&it.merchant, &it.rma_identifier)) {
            receiving::note_unit(conn, deliveries, event, clock.now()).await?;
        }
        Ok(())
    }
}

struct PlacedExchanges(Ears);

impl Handler for PlacedExchanges {
    type Event = ExchangePlaced;

    const MAX_PREFETCH: u16 = MOST_EXCHANGES;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ExchangePlaced>],
    ) -> Result<(), HandleError> {
        let Ears { deliveries, clock } = &self.0;
        for event in by_return(events, |it| (&it.merchant, &it.rma_identifier)) {
            exchanges::note_placed(conn, deliveries, event, clock.now()).await?;
        }
        Ok(())
    }
}

struct FailedExchanges(Ears);

impl Handler for FailedExchanges {
    type Event = ExchangeFailed;

    const MAX_PREFETCH: u16 = MOST_EXCHANGES;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ExchangeFailed>],
    ) -> Result<(), HandleError> {
        let Ears { deliveries, clock } = &self.0;
        for event in by_return(events, |it| (&it.merchant, &it.rma_identifier)) {
            exchanges::note_failed(conn, deliveries, event, clock.now()).await?;
        }
        Ok(())
    }
}
