//! The copy each service keeps of what auth says: merchants with their endpoints, and what was
//! revoked.
//!
//! Events bring the changes into the service's own database, once for all replicas; every replica
//! follows that table into memory, so looking a merchant up costs nothing and works while auth,
//! the broker or the database is away. A copy is the event's own document, also the parts that only
//! a newer version of this program can read, and is never replaced by an older version.

mod letter;
mod store;

use std::{collections::HashMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use diesel_async::AsyncPgConnection;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::{
    access::{MerchantId, Revocation},
    merchant::{Merchant, MerchantChanged},
};
use messaging::{Broker, Envelope, HandleError, Handler, consume};
use platform::{
    Clock, ErrorKind, Failure, Process, Timestamp, chain,
    database::{DatabaseError, Pool},
    identity::{Access, Caller, Verifier},
};
use tokio::sync::{Notify, watch};

use crate::letter::Letter;

/// The tables this crate keeps in a service's database.
pub const MIGRATIONS: EmbeddedMigrations = embed_migrations!("../../migrations/merchants");

/// How often a replica looks for what other replicas were told.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A look goes back this far behind the one before: a row is stamped before its transaction commits.
const OVERLAP: chrono::TimeDelta = chrono::TimeDelta::seconds(30);

/// What this process knows.
pub struct Merchants {
    merchants: ArcSwap<HashMap<MerchantId, Arc<Merchant>>>,
    changes: watch::Sender<u64>,
}

/// Why a caller's merchant cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MerchantError {
    #[error(transparent)]
    Access(#[from] Access),
    #[error("there is no merchant {0}")]
    Unknown(MerchantId),
    #[error("merchant {0} is new and not known here yet")]
    NotReplicated(MerchantId),
}

impl Failure for MerchantError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Access(access) => access.kind(),
            Self::Unknown(_) => ErrorKind::Missing,
            Self::NotReplicated(_) => ErrorKind::Unavailable,
        }
    }
}

impl Merchants {
    /// Hears auth's events on behalf of `service` and keeps the copy; tells `verifier` what was
    /// revoked.
    pub fn start(
        service: &'static str,
        process: &Process,
        broker: &Broker,
        verifier: &Arc<Verifier>,
    ) -> Arc<Self> {
        let merchants =
            Arc::new(Self { merchants: ArcSwap::default(), changes: watch::Sender::new(0) });
        let heard = Arc::new(Notify::new());
        consume(broker, service, process, MerchantCopies { heard: heard.clone() });
        let clock = process.clock.clone();
        consume(broker, service, process, RevocationCopies { heard: heard.clone(), clock });
        let follower = Follower {
            pool: process.pool.clone(),
            clock: process.clock.clone(),
            merchants: merchants.clone(),
            verifier: verifier.clone(),
            seen_at: Timestamp::UNIX_EPOCH,
        };
        process.tasks.spawn("merchants", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = follower.run(heard) => {}
            }
        });
        let loaded = merchants.changes.subscribe();
        process.health.add("merchants", move || {
            let loaded = *loaded.borrow() > 0;
            async move {
                loaded.then_some(()).ok_or_else(|| "not read from the database yet".to_owned())
            }
        });
        merchants
    }

    pub fn get(&self, id: &MerchantId) -> Option<Arc<Merchant>> {
        self.merchants.load().get(id).cloned()
    }

    /// Everyone, as known at this moment.
    pub fn all(&self) -> Arc<HashMap<MerchantId, Arc<Merchant>>> {
        self.merchants.load_full()
    }

    /// The merchant a request is about.
    pub fn merchant_for(&self, caller: &Caller) -> Result<Arc<Merchant>, MerchantError> {
        let id = caller.merchant()?;
        self.get(id).ok_or_else(|| {
            // A token names only merchants that exist; the news of this one is still on its way.
            let own = caller.claims.merchant.is_some();
            if own {
                MerchantError::NotReplicated(id.clone())
            } else {
                MerchantError::Unknown(id.clone())
            }
        })
    }

    /// Ticks whenever something changed here.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn replace(&self, fresh: Vec<Merchant>) {
        let known = self.merchants.load();
        let news = |merchant: &Merchant| {
            let known = known.get(&merchant.identifier).map(Arc::as_ref);
            known.is_none_or(|known| known.version <= merchant.version && known != merchant)
        };
        let news: Vec<_> = fresh.into_iter().filter(news).collect();
        let first = *self.changes.borrow() == 0;
        if news.is_empty() && !first {
            return;
        }
        let mut merchants = HashMap::clone(&known);
        merchants.extend(
            news.into_iter().map(|merchant| (merchant.identifier.clone(), Arc::new(merchant))),
        );
        self.merchants.store(Arc::new(merchants));
        self.changes.send_modify(|changes| *changes += 1);
    }
}

/// Reads what the service was told into this process, now and whenever there may be more.
struct Follower {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    verifier: Arc<Verifier>,
    /// When the last look began, by the database's clock. Not the newest row's time: rows that came
    /// all at once would be read again and again until there is a newer one.
    seen_at: Timestamp,
}

impl Follower {
    async fn run(mut self, heard: Arc<Notify>) {
        loop {
            if let Err(error) = self.look().await {
                tracing::warn!(error = chain(&error), "merchant replica was not refreshed");
            }
            // Waiting for either is all there is to do; a missed wake costs one interval.
            drop(tokio::time::timeout(LOOK_EVERY, heard.notified()).await);
        }
    }

    async fn look(&mut self) -> Result<(), DatabaseError> {
        let mut conn = self.pool.get().await?;
        let (now, since) = (store::now(&mut conn).await?, self.seen_at - OVERLAP);
        for revocation in store::revocations_since(&mut conn, since).await? {
            self.verifier.revocations().add(revocation);
        }
        self.verifier.revocations().set_known();
        self.verifier.revocations().forget_expired(self.clock.now());
        self.merchants.replace(store::merchants_since(&mut conn, since).await?);
        self.seen_at = now;
        Ok(())
    }
}

struct MerchantCopies {
    heard: Arc<Notify>,
}

impl Handler for MerchantCopies {
    type Event = Letter<MerchantChanged>;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<Self::Event>],
    ) -> Result<(), HandleError> {
        for event in events {
            let Letter { event: MerchantChanged { merchant }, document } = &event.data;
            store::copy_merchant(conn, merchant, &document["merchant"]).await?;
        }
        Ok(())
    }

    fn after_commit(&self) {
        self.heard.notify_one();
    }
}

struct RevocationCopies {
    heard: Arc<Notify>,
    clock: Clock,
}

impl Handler for RevocationCopies {
    type Event = Letter<Revocation>;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<Self::Event>],
    ) -> Result<(), HandleError> {
        for event in events {
            let Letter { event: revocation, document } = &event.data;
            store::copy_revocation(conn, revocation, document).await?;
        }
        Ok(store::forget_expired(conn, self.clock.now()).await?)
    }

    fn after_commit(&self) {
        self.heard.notify_one();
    }
}
