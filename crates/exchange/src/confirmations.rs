//! Consumes `return.confirmed`. The handler only stores the event, because placing the order needs a
//! request to the merchant, which must not run inside a transaction.

use std::sync::Arc;

use diesel_async::AsyncPgConnection;
use domain::exchange::{ExchangeOrder, VariantLookups, check_variants};
use domain::returns::ReturnConfirmed;
use messaging::{Envelope, HandleError, Handler};
use platform::Clock;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::erasing;
use crate::error::Error;
use crate::store::{confirmations, erasures};

pub(crate) struct ConfirmedReturns {
    pub(crate) clock: Clock,
    pub(crate) new_confirmations: Arc<Notify>,
}

impl Handler for ConfirmedReturns {
    type Event = ReturnConfirmed;

    /// An event with a thousand units can have eight megabytes.
    const MAX_PREFETCH: u16 = 16;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ReturnConfirmed>],
    ) -> Result<(), HandleError> {
        let now = self.clock.now();
        let confirmed = events.iter().map(|event| &event.data);
        erasures::wait_for_erasures(conn, confirmed).await.map_err(Error::from)?;
        for event in events {
            check(&event.data)?;
            let confirmed = erasing::without_erased(conn, &event.data).await?;
            confirmations::insert(conn, &confirmed, event.traceparent.as_deref(), now).await?;
        }
        Ok(())
    }

    fn after_commit(&self, _: &[&Envelope<Self::Event>]) {
        self.new_confirmations.notify_one();
    }
}

/// Rejects an event that cannot become an exchange order, so that it is dead-lettered.
fn check(confirmed: &ReturnConfirmed) -> Result<(), Error> {
    let units =
        check_variants(&confirmed.units, confirmed.is_gift, &VariantLookups::new()).exchangeable;
    match ExchangeOrder::new(confirmed, &units, None, Uuid::nil()) {
        Ok(_) => Ok(()),
        Err(cause) => Err(Error::Unplaceable {
            rma: confirmed.rma_identifier.clone(),
            order: confirmed.original_order_id.clone(),
            cause,
        }),
    }
}
