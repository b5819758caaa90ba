//! Settles what senders did, in batches, ledger and log in one transaction. Only after that may a
//! message be let go of by its queue. The dead come last, and their letters before their transaction.

use std::sync::Arc;

use bytes::Bytes;
use diesel_async::{AsyncConnection, AsyncPgConnection};
use domain::delivery::DeliveryDead;
use messaging::Publisher;
use platform::{ErrorKind, Failure, chain, database::DatabaseError};
use uuid::Uuid;

use crate::attempt::Message;
use crate::dead_letters::{self, DeadLetters, LetterError};
use crate::engine::{Engine, patience};
use crate::ledger::{self, Settlement, Verdict, Windows};
use crate::observer::{Ended, Ending};

/// A message that was tried, and where it came from.
pub(crate) struct Done {
    pub(crate) tag: Tag,
    pub(crate) settlement: Settlement,
    pub(crate) message: Message,
    /// What the merchant answered last.
    pub(crate) answer: Bytes,
}

impl Done {
    /// Which message and round it is.
    fn of(&self) -> (Uuid, i32) {
        (self.settlement.id, self.settlement.round)
    }
}

/// What became of a batch.
pub(crate) struct Settled {
    pub(crate) settler: Settler,
    pub(crate) over: Vec<Done>,
    /// To be settled later.
    pub(crate) put_off: Vec<Done>,
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

    /// Settles a batch, however long the database is away. What cannot be settled for another reason
    /// stays queued, and comes again when its lease is over. The dead whose letters the broker did not
    /// take are put off: nobody else waits for them.
    pub(crate) async fn settle(mut self, batch: Vec<Done>) -> Settled {
        let (dead, mut over): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|done| done.settlement.verdict == Verdict::Dead);
        self.persist_all(&over, &DeadLetters::default()).await;
        let mut put_off = Vec::new();
        if !dead.is_empty() {
            match self.write_letters(&dead).await {
                Ok(letters) => {
                    let (refused, buried): (Vec<_>, Vec<_>) =
                        dead.into_iter().partition(|done| letters.not_taken.contains(&done.of()));
                    if !refused.is_empty() {
                        let letters = refused.len();
                        tracing::warn!(letters, "the broker did not take {letters} dead letters");
                    }
                    self.persist_all(&buried, &letters).await;
                    over.extend(buried);
                    put_off = refused;
                }
                Err(error) => {
                    tracing::warn!(error = chain(&error), "dead letters wait");
                    put_off = dead;
                }
            }
        }
        Settled { settler: self, over, put_off }
    }

    async fn write_letters(&mut self, dead: &[Done]) -> Result<DeadLetters, LetterError> {
        let mut conn = self.take_conn().await?;
        let dead: Vec<_> = dead.iter().map(|done| (&done.settlement, &done.message)).collect();
        let letters = dead_letters::write(&self.engine, &self.publisher, &mut conn, &dead).await?;
        self.conn = Some(conn);
        Ok(letters)
    }

    async fn persist_all(&mut self, batch: &[Done], letters: &DeadLetters) {
        match self.persist(batch, letters).await {
            Ok(()) => {}
            Err(error) if batch.len() == 1 => give_up(batch, &error),
            // One of them is at fault; each on its own, the others do not notice.
            Err(_) => {
                for one in batch.chunks(1) {
                    if let Err(error) = self.persist(one, letters).await {
                        give_up(one, &error);
                    }
                }
            }
        }
        self.engine.wake.notify_one();
    }

    async fn persist(
        &mut self,
        batch: &[Done],
        letters: &DeadLetters,
    ) -> Result<(), DatabaseError> {
        if batch.is_empty() {
            return Ok(());
        }
        let mut backoff = patience();
        loop {
            match self.attempt(batch, letters).await {
                Err(error) if passing(&error) => {
                    tracing::warn!(error = chain(&error), "settling waits");
                    tokio::time::sleep(backoff.pause()).await;
                }
                settled => return settled,
            }
        }
    }

    async fn attempt(
        &mut self,
        batch: &[Done],
        letters: &DeadLetters,
    ) -> Result<(), DatabaseError> {
        let mut conn = self.take_conn().await?;
        let announced = batch.iter().filter_map(|done| letters.written.get(&done.of())).collect();
        self.transact(&mut conn, batch, announced).await?;
        self.conn = Some(conn);
        Ok(())
    }

    /// Whoever is done with it and content puts it back.
    async fn take_conn(&mut self) -> Result<AsyncPgConnection, DatabaseError> {
        match self.conn.take() {
            Some(conn) => Ok(conn),
            None => self.engine.pool.dedicated().await,
        }
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
        engine.metrics.settled(&settlements);
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
fn passing(error: &DatabaseError) -> bool {
    !ledger::is_forgotten(error) && error.kind() == ErrorKind::Unavailable
}

fn give_up(batch: &[Done], error: &DatabaseError) {
    for done in batch {
        tracing::error!(
            delivery.id = %done.settlement.id,
            error = chain(error),
            "what came of a message could not be written down; it is sent again later"
        );
    }
}
