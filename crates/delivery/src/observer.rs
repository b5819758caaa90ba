//! Lets a service react to settled messages in the transaction that settles them.

use diesel_async::AsyncPgConnection;
use futures_util::future::BoxFuture;
use platform::database::DatabaseError;

use crate::settlement::Settlement;
use crate::writer::MessageWriter;

/// Called for each batch of settled messages, including those that are retried.
///
/// If it fails, the transaction is rolled back and each message of the batch is settled alone. It may wait for a lock
/// only for a moment: the transaction has a lock time-out, after which the message is settled later. The transaction
/// has locked the deliveries and the windows of their endpoints already. Messages that follow from a response are
/// appended with `messages`.
pub trait SettlementObserver: Send + Sync + 'static {
    fn on_settled<'a>(
        &'a self,
        messages: &'a MessageWriter,
        conn: &'a mut AsyncPgConnection,
        settled: &'a [&'a Settlement],
    ) -> BoxFuture<'a, Result<(), DatabaseError>>;
}

/// Observer for services that need none.
impl SettlementObserver for () {
    fn on_settled<'a>(
        &'a self,
        _: &'a MessageWriter,
        _: &'a mut AsyncPgConnection,
        _: &'a [&'a Settlement],
    ) -> BoxFuture<'a, Result<(), DatabaseError>> {
        Box::pin(async { Ok(()) })
    }
}
