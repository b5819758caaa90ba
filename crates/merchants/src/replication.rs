//! Replication: auth's events into the database, and from there into memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use diesel_async::AsyncPgConnection;
use domain::{access::Revocation, merchant::MerchantChanged};
use messaging::{Broker, Envelope, HandleError, Handler, consume};
use platform::{
    Clock, Process, Timestamp, chain,
    database::{DatabaseError, Pool},
    identity::Verifier,
};

use tokio::time::Instant;

use crate::{lookup::Merchants, raw_event::RawEvent, store};

/// Interval at which a process reads rows that other replicas of the service wrote.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);
/// A refresh that finds many rows, for example while all merchants are republished, is repeated after this many times
/// its duration, but at least this often.
const PAUSE_FACTOR: u32 = 10;
const MAX_REFRESH_INTERVAL: Duration = Duration::from_secs(5);
/// A refresh also reads rows from this long before the previous one: a row gets its timestamp
/// before its transaction commits.
const REFRESH_OVERLAP: chrono::TimeDelta = chrono::TimeDelta::seconds(30);
/// Merchants whose documents are in memory together.
const LOAD_SIZE: usize = 500;

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
        let verifier = verifier.clone();
        let clock = process.clock.clone();
        let own_writes = Arc::new(OwnWrites::default());
        let handler =
            MerchantHandler { merchants: merchants.clone(), own_writes: own_writes.clone() };
        consume(broker, service, process, handler);
        let handler = RevocationHandler { verifier: verifier.clone(), clock: clock.clone() };
        consume(broker, service, process, handler);
        let refresher = Refresher {
            pool: process.pool.clone(),
            clock,
            merchants: merchants.clone(),
            own_writes,
            verifier,
            refreshed_at: Timestamp::UNIX_EPOCH,
            read: HashMap::new(),
        };
        process.tasks.spawn("merchants", |stop| async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = refresher.run() => {}
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

/// The rows that this process wrote, with their times. A transaction that failed leaves times that no row has.
#[derive(Default)]
struct OwnWrites(Mutex<HashMap<String, Timestamp>>);

impl OwnWrites {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what other replicas of the service wrote to the database, and everything at the start.
struct Refresher {
    pool: Pool,
    clock: Clock,
    merchants: Arc<Merchants>,
    own_writes: Arc<OwnWrites>,
    verifier: Arc<Verifier>,
    /// Start of the last refresh, by the database's clock. With the newest row's timestamp instead,
    /// rows with equal timestamps would be read again until a newer row comes.
    refreshed_at: Timestamp,
    /// The merchants that the last refresh found, with the time at which they were written.
    read: HashMap<String, Timestamp>,
}

impl Refresher {
    async fn run(mut self) {
        loop {
            let start = Instant::now();
            if let Err(error) = self.refresh().await {
                tracing::warn!(error = chain(&error), "merchant replica refresh failed");
            }
            let pause = start.elapsed() * PAUSE_FACTOR;
            tokio::time::sleep(pause.clamp(REFRESH_INTERVAL, MAX_REFRESH_INTERVAL)).await;
        }
    }

    async fn refresh(&mut self) -> Result<(), DatabaseError> {
        let mut conn = self.pool.get().await?;
        let since = self.refreshed_at - REFRESH_OVERLAP;
        let mut changes = store::changes_since(&mut conn, since).await?;
        for revocation in changes.revocations() {
            self.verifier.revocations().add(revocation);
        }
        self.verifier.revocations().set_loaded();
        self.verifier.revocations().remove_expired(changes.now.min(self.clock.now()));
        let written = changes.merchants();
        let unread = self.unread(&written, since);
        for part in unread.chunks(LOAD_SIZE) {
            self.merchants.update(store::merchants(&mut conn, part).await?);
        }
        self.merchants.set_loaded();
        (self.refreshed_at, self.read) = (changes.now, written);
        Ok(())
    }

    /// The merchants that neither this process wrote nor the last refresh found.
    fn unread<'a>(
        &self,
        written: &'a HashMap<String, Timestamp>,
        since: Timestamp,
    ) -> Vec<&'a String> {
        let mut own_writes = self.own_writes.lock();
        own_writes.retain(|_, at| *at >= since);
        let is_known = |id: &String, at: &Timestamp| {
            self.read.get(id) == Some(at) || own_writes.get(id) == Some(at)
        };
        let unread = written.iter().filter(|(id, at)| !is_known(id, at));
        unread.map(|(id, _)| id).collect()
    }
}

struct MerchantHandler {
    merchants: Arc<Merchants>,
    own_writes: Arc<OwnWrites>,
}

impl Handler for MerchantHandler {
    type Event = RawEvent<MerchantChanged>;

    async fn handle(
        &self,
        conn: &mut AsyncPgConnection,
        events: &[&Envelope<Self::Event>],
    ) -> Result<(), HandleError> {
        let merchants = events.iter().map(|event| {
            let RawEvent { event: MerchantChanged { merchant }, json } = &event.data;
            (merchant, &json["merchant"])
        });
        let written = store::upsert_merchants(conn, merchants).await?;
        self.own_writes.lock().extend(written);
        Ok(())
    }

    fn after_commit(&self, events: &[&Envelope<Self::Event>]) {
        self.merchants.update(events.iter().map(|event| event.data.event.merchant.clone()));
    }
}

struct RevocationHandler {
    verifier: Arc<Verifier>,
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

    fn after_commit(&self, events: &[&Envelope<Self::Event>]) {
        for event in events {
            self.verifier.revocations().add(event.data.event.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use domain::access::Revoked;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn merchants_that_this_process_wrote_are_not_read_again() {
        let database =
            testkit::Database::create(vec![messaging::MIGRATIONS, crate::MIGRATIONS]).await;
        let mut conn = database.pool().get().await.unwrap();
        let refresher = Refresher {
            pool: database.pool(),
            clock: Clock::system(),
            merchants: Arc::new(Merchants::empty()),
            own_writes: Arc::default(),
            verifier: Arc::new(Verifier::new("test", Clock::system())),
            refreshed_at: Timestamp::UNIX_EPOCH,
            read: HashMap::new(),
        };
        let acme = testkit::merchant("acme");
        let json = json!(acme);
        let since = Timestamp::UNIX_EPOCH;
        let own = store::upsert_merchants(&mut conn, [(&acme, &json)].into_iter()).await.unwrap();
        assert_eq!(refresher.unread(&own, since), ["acme"]);
        refresher.own_writes.lock().extend(own.clone());
        assert!(refresher.unread(&own, since).is_empty());
        // The same version as another replica wrote it.
        let other = json!({"identifier": "acme"});
        let other = store::upsert_merchants(&mut conn, [(&acme, &other)].into_iter());
        let other = other.await.unwrap();
        assert_eq!(refresher.unread(&other, since), ["acme"]);
        let later = other["acme"];
        assert_eq!(refresher.unread(&own, later), ["acme"], "own writes are forgotten");
    }

    #[tokio::test]
    async fn a_revocation_is_kept_until_both_clocks_say_that_it_expired() {
        let database =
            testkit::Database::create(vec![messaging::MIGRATIONS, crate::MIGRATIONS]).await;
        let pool = database.pool();
        let now = Clock::system().now();
        let days = TimeDelta::days;
        for (id, expires_in, clock_is_off) in
            [("ahead", days(1), days(3)), ("behind", -days(1), -days(3))]
        {
            let revocation = Revocation {
                revoked: Revoked::Client(id.to_owned()),
                expires_at: now + expires_in,
            };
            let mut conn = pool.get().await.unwrap();
            store::upsert_revocation(&mut conn, &revocation, &json!(revocation)).await.unwrap();
            drop(conn);
            let verifier = Arc::new(Verifier::new("test", Clock::system()));
            let mut refresher = Refresher {
                pool: pool.clone(),
                clock: Clock::from_fn(move || now + clock_is_off),
                merchants: Arc::new(Merchants::empty()),
                own_writes: Arc::default(),
                verifier: verifier.clone(),
                refreshed_at: Timestamp::UNIX_EPOCH,
                read: HashMap::new(),
            };
            refresher.refresh().await.unwrap();
            assert!(verifier.revocations().covers("token", id), "{id}");
        }
    }
}
