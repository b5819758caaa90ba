//! Replication: auth's events into the database, and from there into memory.

use std::{sync::Arc, time::Duration};

use diesel_async::AsyncPgConnection;
use domain::{access::Revocation, merchant::MerchantChanged};
use messaging::{Broker, Envelope, HandleError, Handler, consume};
use platform::{
    Clock, Process, Timestamp, chain,
    database::{DatabaseError, Pool},
    identity::Verifier,
};
use tokio::sync::Notify;

use crate::{lookup::Merchants, raw_event::RawEvent, store};

/// Interval at which a process reads rows that other replicas of the service wrote.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// A refresh also reads rows from this long before the previous one: a row gets its timestamp
/// before its transaction commits.
const REFRESH_OVERLAP: chrono::TimeDelta = chrono::TimeDelta::seconds(30);

impl Merchants {
    /// Consumes auth's events for `service`, keeps the replica up to date and passes revocations to
    /// `verifier`.
    pub fn start(
        service: &'static str,
        process: &Process,
        broker: &Broker,
        verifier: &Arc<Verifier>,
    ) -> Arc<Self> {
        let merchants = Arc::new(Self::empty());
        let (changed, clock) = (Arc::new(Notify::new()), process.clock.clone());
        let handler = MerchantHandler { changed: changed.clone() };
        consume(broker, service, process, handler);
        let handler = RevocationHandler { changed: changed.clone(), clock: clock.clone() };
        consume(broker, service, process, handler);
        let refresher = Refresher {
            pool: process.pool.clone(),
            clock,
            merchants: merchants.clone(),
            verifier: verifier.clone(),
            refreshed_at: Timestamp::UNIX_EPOCH,
        };
        process.tasks.spawn("merchants", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = refresher.run(changed) => {}
            }
        });
        let changes = merchants.changes();
        process.health.add("merchants", move || {
            let is_loaded = *changes.borrow() > 0;
            async move {
                is_loaded.then_some(()).ok_or_else(|| "not loaded from the database yet".to_owned())
            }
        });
        merchants
    }
}

/// Reads the replica from the database into memory.
struct Refresher {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    verifier: Arc<Verifier>,
    /// Start of the last refresh, by the database's clock. With the newest row's timestamp instead,
    /// rows with equal timestamps would be read again until a newer row comes.
    refreshed_at: Timestamp,
}

impl Refresher {
    async fn run(mut self, changed: Arc<Notify>) {
        loop {
            if let Err(error) = self.refresh().await {
                tracing::warn!(error = chain(&error), "merchant replica refresh failed");
            }
            // Either a notification or the timeout starts the next refresh.
            drop(tokio::time::timeout(REFRESH_INTERVAL, changed.notified()).await);
        }
    }

    async fn refresh(&mut self) -> Result<(), DatabaseError> {
        let mut conn = self.pool.get().await?;
        let (now, since) = (store::now(&mut conn).await?, self.refreshed_at - REFRESH_OVERLAP);
        for revocation in store::revocations_since(&mut conn, since).await? {
            self.verifier.revocations().add(revocation);
        }
        self.verifier.revocations().set_loaded();
        self.verifier.revocations().remove_expired(self.clock.now());
        self.merchants.update(store::merchants_since(&mut conn, since).await?);
        self.refreshed_at = now;
        Ok(())
    }
}

struct MerchantHandler {
    changed: Arc<Notify>,
}

impl Handler for MerchantHandler {
    type Event = RawEvent<MerchantChanged>;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<Self::Event>],
    ) -> Result<(), HandleError> {
        for event in events {
            let RawEvent { event: MerchantChanged { merchant }, json } = &event.data;
            store::upsert_merchant(conn, merchant, &json["merchant"]).await?;
        }
        Ok(())
    }

    fn after_commit(&self) {
        self.changed.notify_one();
    }
}

struct RevocationHandler {
    changed: Arc<Notify>,
    clock: Clock,
}

impl Handler for RevocationHandler {
    type Event = RawEvent<Revocation>;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<Self::Event>],
    ) -> Result<(), HandleError> {
        for event in events {
            store::upsert_revocation(conn, &event.data.event, &event.data.json).await?;
        }
        Ok(store::delete_expired(conn, self.clock.now()).await?)
    }

    fn after_commit(&self) {
        self.changed.notify_one();
    }
}
