//! Hearing that returns were confirmed. Each is written down and nothing else: what follows needs
//! the merchant, and no merchant is asked within a transaction.

use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use domain::exchange::ExchangeOrder;
use domain::returns::ReturnConfirmed;
use messaging::{Envelope, HandleError, Handler};
use platform::Clock;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::error::Error;
use crate::store::confirmations;

pub(crate) struct Confirmations {
    pub(crate) clock: Clock,
    pub(crate) heard: Arc<Notify>,
}

impl Handler for Confirmations {
    type Event = ReturnConfirmed;

    /// One may be eight megabytes: a thousand units, and all that is said of each.
    const MAX_PREFETCH: u16 = 16;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ReturnConfirmed>],
    ) -> Result<(), HandleError> {
        let now = self.clock.now();
        for event in events {
            check(&event.data)?;
            confirmations::hear(conn, &event.data, event.traceparent.as_deref(), now).await?;
        }
        Ok(())
    }

    fn after_commit(&self) {
        self.heard.notify_one();
    }
}

/// Refuses what no order could ever be made of, so that it ends where an operator sees it.
fn check(confirmed: &ReturnConfirmed) -> Result<(), Error> {
    let units: Vec<_> = confirmed.units.iter().collect();
    match ExchangeOrder::new(confirmed, &units, Uuid::nil()) {
        Ok(_) => Ok(()),
        Err(cause) => Err(Error::Unplaceable {
            rma: confirmed.rma_identifier.clone(),
            order: confirmed.original_order_id.clone(),
            cause,
        }),
    }
}
