//! Work on a table that one replica does at a time, and how often it looks at that table.

use std::{sync::Arc, time::Duration};

use diesel_async::AsyncPgConnection;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{DatabaseError, Pool};
use crate::{chain, retry::Backoff};

/// After being woken it looks so many milliseconds apart before it believes that nothing was
/// committed: whoever wakes it does so within a transaction.
const LOOKS: [u64; 6] = [0, 1, 3, 6, 15, 30];

/// What a look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// There was something, and there may be more.
    Found,
    /// There was so much that it pays to wait this long for more, whatever is heard.
    Plenty(Duration),
    Nothing,
}

/// What a leader does.
pub trait Work {
    /// The advisory lock of whoever leads. Chosen once; the same in every installation, and per
    /// database anyway.
    const LOCK: i64;
    /// What is logged when it fails.
    const TROUBLE: &'static str;
    type Error: std::error::Error + From<DatabaseError> + 'static;

    /// Looks, and does what there is to do. The lock is held by this connection.
    fn look(
        &mut self,
        conn: &mut AsyncPgConnection,
    ) -> impl Future<Output = Result<Look, Self::Error>> + Send;
}

impl Pool {
    /// Does the work for as long as this replica leads, and tries to lead for as long as it does
    /// not. Looks when woken, and every `poll` in any case.
    pub async fn work<W: Work>(
        self,
        mut work: W,
        wake: Arc<Notify>,
        poll: Duration,
        stop: CancellationToken,
    ) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        let (mut leading, mut looks) = (None, LOOKS.iter());
        while !stop.is_cancelled() {
            let looked = self.look(&mut work, &mut leading).await;
            if looked.is_ok() {
                backoff.reset();
            }
            let (pause, listens) = match looked {
                Ok(Some(Look::Nothing)) => {
                    let next = looks.next().map(|millis| Duration::from_millis(*millis));
                    (next.unwrap_or(poll), true)
                }
                Ok(Some(found)) => {
                    looks = LOOKS.iter();
                    match found {
                        Look::Plenty(pause) => (pause, false),
                        _ => (Duration::ZERO, true),
                    }
                }
                // Whoever does not lead can do nothing about news.
                Ok(None) => (poll, false),
                Err(error) => {
                    tracing::warn!(error = chain(&error), "{}", W::TROUBLE);
                    leading = None;
                    // Longer than the others wait: one of them may be better off.
                    (poll + backoff.pause(), false)
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = tokio::time::sleep(pause) => {}
                () = wake.notified(), if listens => looks = LOOKS.iter(),
            }
        }
    }

    /// Nothing, if another replica leads.
    async fn look<W: Work>(
        &self,
        work: &mut W,
        leading: &mut Option<AsyncPgConnection>,
    ) -> Result<Option<Look>, W::Error> {
        if leading.is_none() {
            *leading = self.lead(W::LOCK).await?;
        }
        match leading {
            Some(conn) => Ok(Some(work.look(conn).await?)),
            None => Ok(None),
        }
    }
}
