//! Consumes `shopper.erasure_confirmed`: records which services have erased a shopper's data.

use diesel_async::AsyncPgConnection;
use domain::erasure::ErasureConfirmed;
use messaging::{Envelope, HandleError, Handler};
use platform::Clock;

use crate::store;

pub(crate) struct ErasureConfirmations {
    pub(crate) clock: Clock,
}

impl Handler for ErasureConfirmations {
    type Event = ErasureConfirmed;

    /// Sorted, so that two replicas lock the erasures in the same order.
    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<ErasureConfirmed>],
    ) -> Result<(), HandleError> {
        let mut confirmed: Vec<_> = events.iter().map(|event| &event.data).collect();
        confirmed.sort_by_key(|it| it.erasure_id);
        for confirmed in confirmed {
            store::confirm_erasure(conn, confirmed, self.clock.now()).await?;
        }
        Ok(())
    }
}
