//! What a service that wants to know learns of its messages' ends.

use bytes::Bytes;
use diesel_async::AsyncPgConnection;
use domain::message_kind::MessageKind;
use futures_util::future::BoxFuture;
use platform::database::DatabaseError;
use uuid::Uuid;

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Delivered,
    /// It lies in the dead-letter queue, until someone replays it.
    Dead,
}

/// A message that was settled just now.
#[derive(Clone, Debug)]
pub struct Ended {
    pub id: Uuid,
    pub merchant: String,
    pub kind: MessageKind,
    pub ending: Ending,
    /// What the merchant answered, as far as it was read.
    pub answer: Bytes,
}

/// Takes note of endings within the transaction that settles them.
///
/// An error means that none of them is settled; each is then tried on its own.
pub trait SettlementObserver: Send + Sync + 'static {
    fn ended<'a>(
        &'a self,
        conn: &'a mut AsyncPgConnection,
        ended: &'a [Ended],
    ) -> BoxFuture<'a, Result<(), DatabaseError>>;
}

/// A service that does not want to know.
impl SettlementObserver for () {
    fn ended<'a>(
        &'a self,
        _: &'a mut AsyncPgConnection,
        _: &'a [Ended],
    ) -> BoxFuture<'a, Result<(), DatabaseError>> {
        Box::pin(async { Ok(()) })
    }
}
