//! Deliveries that are settled without being sent.

use delivery::NewMessage;
use diesel_async::{AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _};
use platform::Clock;
use platform::database::DatabaseError;
use uuid::Uuid;

use super::TestApp;

impl TestApp {
    /// Appends messages and marks them dead in the same transaction, so that none is ever sent.
    pub(crate) async fn append_unsent_dead(&self, batch: &[NewMessage]) -> Vec<Uuid> {
        let mut conn = self.pool.get().await.unwrap();
        let now = Clock::system().now();
        // A transaction of the pool could claim the messages, and publish them after the commit.
        let conn: &mut AsyncPgConnection = &mut conn;
        conn.transaction(async |conn| {
            let ids = self.replica.deliveries.append(conn, now, batch).await?;
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
