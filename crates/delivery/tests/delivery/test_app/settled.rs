//! Deliveries that are settled without being sent.

use delivery::NewMessage;
use diesel_async::SimpleAsyncConnection as _;
use platform::database::DatabaseError;
use platform::{Clock, Timestamp};
use uuid::Uuid;

use super::TestApp;

impl TestApp {
    /// Appends messages and marks them dead in the same transaction, so that none is ever sent.
    pub(crate) async fn append_unsent_dead(&self, batch: &[NewMessage]) -> Vec<Uuid> {
        self.append_unsent_dead_at(Clock::system().now(), batch).await
    }

    /// Appends messages of another time, as [`Self::append_unsent_dead`] does.
    pub(crate) async fn append_unsent_dead_at(
        &self,
        at: Timestamp,
        batch: &[NewMessage],
    ) -> Vec<Uuid> {
        let mut conn = self.pool.get().await.unwrap();
        conn.transaction(async |conn| {
            let ids = self.replica.deliveries.append(conn, at, batch).await?;
            conn.batch_execute(
                "INSERT INTO delivery_attempts SELECT id, 0, 6, next_attempt_at, 1, 'rejected', \
                 422, '', '', 'dead', '', '', merchant FROM deliveries; DELETE FROM deliveries",
            )
            .await?;
            Ok::<_, DatabaseError>(ids)
        })
        .await
        .unwrap()
    }
}
