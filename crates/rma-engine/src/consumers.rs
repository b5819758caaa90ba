//! What other services say. Each event is handled in the transaction that remembers it.

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::order::OrderStored;
use messaging::{Broker, HandleError, Handler, Received, consume};
use platform::{Clock, Process, Service as _};

use crate::{App, projection};

/// Begins to listen.
pub(crate) fn start(app: &App, broker: &Broker, process: &Process) {
    let ears = || Ears { deliveries: app.deliveries.clone(), clock: app.clock.clone() };
    consume(broker, App::NAME, process, Orders(ears()));
}

/// What every handler needs.
struct Ears {
    deliveries: Deliveries,
    clock: Clock,
}

struct Orders(Ears);

impl Handler for Orders {
    type Event = OrderStored;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Received<OrderStored>],
    ) -> Result<(), HandleError> {
        let Ears { deliveries, clock } = &self.0;
        let snapshots = events.iter().map(|event| &event.data);
        Ok(projection::project(conn, deliveries, snapshots, clock.now()).await?)
    }
}
