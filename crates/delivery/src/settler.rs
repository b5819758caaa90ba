//! Settles what senders did, in batches: dead letters first, then ledger and log in one
//! transaction. Only after that may a message be let go of by its queue.

use std::sync::Arc;

use bytes::Bytes;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use domain::delivery::DeliveryDead;
use messaging::Publisher;
use platform::{Failure, Kind as Trouble, chain, database::DatabaseError};

use crate::attempt::Message;
use crate::engine::{Engine, patience};
use crate::ledger::{self, Settlement, Verdict, Windows};
use crate::letters::{self, LetterError, Written};
use crate::witness::{Ended, Ending};

/// A message that was tried, and where it came from.
pub(crate) struct Done {
    pub(crate) tag: Tag,
    pub(crate) settlement: Settlement,
    pub(crate) message: Message,
    /// What the merchant answered last.
    pub(crate) answer: Bytes,
}

/// A message's place on the work queue: tags mean something only to the subscription they came
/// from, and there may have been several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) subscription: u64,
    pub(crate) number: u64,
}

/// One connection, one batch at a time.
pub(crate) struct Settler {
    engine: Arc<Engine>,
    publisher: Publisher,
    windows: Windows,
    conn: Option<AsyncPgConnection>,
}

impl Settler {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let publisher = Publisher::new(engine.broker.publishing.clone());
        let windows = Windows::new(engine.settings.windows());
        Self { engine, publisher, windows, conn: None }
    }

    /// Settles a batch, however long the broker or the database is away. What cannot be settled
    /// for another reason stays queued, and comes again when its lease is over.
    pub(crate) async fn settle(mut self, batch: Vec<Done>) -> (Self, Vec<Done>) {
        let mut written = Written::new();
        match self.persist(&batch, &mut written).await {
            Ok(()) => {}
            Err(error) if batch.len() == 1 => give_up(&batch, &error),
            // One of them is at fault; each on its own, the others do not notice.
            Err(_) => {
                for one in batch.chunks(1) {
                    if let Err(error) = self.persist(one, &mut written).await {
                        give_up(one, &error);
                    }
                }
            }
        }
        self.engine.wake.notify_one();
        (self, batch)
    }

    async fn persist(&mut self, batch: &[Done], written: &mut Written) -> Result<(), LetterError> {
        let mut backoff = patience();
        loop {
            match self.attempt(batch, written).await {
                Err(error) if passing(&error) => {
                    tracing::warn!(error = chain(&error), "settling waits");
                    self.conn = None;
                    tokio::time::sleep(backoff.pause()).await;
                }
                settled => return settled,
            }
        }
    }

    /// A letter that was written stays written: it is not written again with the next attempt.
    async fn attempt(&mut self, batch: &[Done], written: &mut Written) -> Result<(), LetterError> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => self.engine.pool.get_own().await?,
        };
        let dead: Vec<_> = batch
            .iter()
            .filter(|done| done.settlement.verdict == Verdict::Dead)
            .map(|done| (&done.settlement, &done.message))
            .collect();
        letters::write(&self.engine, &self.publisher, &mut conn, &dead, written).await?;
        let announced = dead.iter().filter_map(|(of, _)| written.get(&(of.id, of.round))).collect();
        self.transact(&mut conn, batch, announced).await?;
        self.conn = Some(conn);
        Ok(())
    }

    async fn transact(
        &mut self,
        conn: &mut AsyncPgConnection,
        batch: &[Done],
        announced: Vec<&DeliveryDead>,
    ) -> Result<(), DatabaseError> {
        let settlements: Vec<_> = batch.iter().map(|done| done.settlement.clone()).collect();
        let (engine, windows) = (&self.engine, &mut self.windows);
        conn.transaction(async |conn| {
            let settled = ledger::settle(conn, windows, &settlements).await?;
            let ended: Vec<_> = batch
                .iter()
                .filter(|done| settled.contains(&done.settlement.id))
                .filter_map(ended)
                .collect();
            if !ended.is_empty() {
                engine.witness.ended(conn, &ended).await?;
            }
            let announced =
                announced.iter().filter(|dead| settled.contains(&dead.delivery)).copied().cloned();
            engine.outbox.append(conn, engine.clock.now(), announced).await
        })
        .await?;
        engine.meters.settled(&settlements);
        Ok(())
    }
}

fn ended(done: &Done) -> Option<Ended> {
    let ending = match done.settlement.verdict {
        Verdict::Delivered => Ending::Delivered,
        Verdict::Dead => Ending::Dead,
        Verdict::Retry(_) => return None,
    };
    Some(Ended {
        id: done.settlement.id,
        merchant: done.settlement.merchant.clone(),
        kind: done.settlement.kind,
        ending,
        answer: done.answer.clone(),
    })
}

/// Whether waiting helps. A day that the log has dropped does not come back: what is settled for it is
/// a second copy of a message that was settled long ago.
fn passing(error: &LetterError) -> bool {
    match error {
        LetterError::Database(error) if ledger::is_forgotten(error) => false,
        LetterError::Database(error) => error.kind() == Trouble::Unavailable,
        LetterError::Link(_) | LetterError::NotTaken => true,
    }
}

fn give_up(batch: &[Done], error: &LetterError) {
    for done in batch {
        tracing::error!(
            delivery.id = %done.settlement.id,
            error = chain(error),
            "what came of a message could not be written down; it is sent again later"
        );
    }
}
