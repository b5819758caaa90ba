//! The connections of a process to its database.

mod owner_transaction;

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use diesel_async::{
    AsyncPgConnection, SimpleAsyncConnection as _,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
        deadpool::{Object, Pool as Deadpool},
    },
};
use futures_util::FutureExt as _;

use super::{
    DatabaseError, Settings,
    connect::{postgres_config, statement_timeout},
    opener::{Opener, bad_connection},
};
use crate::slots::{Slot, Slots};
use crate::{Tasks, telemetry};
use owner_transaction::OwnerTransactions;

/// Interval at which the metrics of the pool are recorded.
const METRICS_INTERVAL: Duration = Duration::from_secs(2);

/// Connections to the service's own database.
#[derive(Clone)]
pub struct Pool {
    connections: Deadpool<AsyncPgConnection>,
    readers: Arc<Slots>,
    pub(crate) owner_transactions: OwnerTransactions,
    acquire_timeout: Duration,
}

/// A connection of the pool, which returns to the pool when it is dropped.
pub struct Connection {
    conn: Object<AsyncPgConnection>,
    /// Readers have one, because their number is limited.
    _slot: Option<Slot>,
}

impl Connection {
    /// Removes the connection from the pool.
    pub(super) fn take(self) -> AsyncPgConnection {
        Object::take(self.conn)
    }
}

impl Deref for Connection {
    type Target = AsyncPgConnection;

    fn deref(&self) -> &AsyncPgConnection {
        &self.conn
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut AsyncPgConnection {
        &mut self.conn
    }
}

impl Pool {
    /// A pool that opens connections when they are needed, so that a process can start before its
    /// database. Without `database.url` it has no connections. Call this on the main runtime:
    /// connections live there, not on the worker that needs one.
    pub fn new(service: &'static str, settings: &Settings) -> anyhow::Result<Self> {
        let postgres = match settings.url {
            Some(_) => Some(postgres_config(service, settings, &statement_timeout(settings))?),
            None => None,
        };
        let mut config = ManagerConfig::default();
        config.recycling_method = RecyclingMethod::Fast;
        let opener = postgres.map(Opener::new);
        config.custom_setup = Box::new(move |_url| {
            let opener = opener.clone();
            async move { opener.ok_or_else(|| bad_connection(&"there is no database"))?.open().await }
                .boxed()
        });
        let manager = AsyncDieselConnectionManager::new_with_config("", config);
        let timeout = Some(settings.acquire_timeout);
        let connections = Deadpool::builder(manager)
            .max_size(settings.max_connections)
            .runtime(deadpool::Runtime::Tokio1)
            .wait_timeout(timeout)
            .create_timeout(timeout)
            .recycle_timeout(timeout)
            .build()?;
        let readers = settings.max_readers.min(settings.max_connections / 2).max(1);
        Ok(Self {
            connections,
            readers: Slots::new(readers, readers.div_ceil(2)),
            owner_transactions: OwnerTransactions::new(settings.max_connections),
            acquire_timeout: settings.acquire_timeout,
        })
    }

    pub async fn get(&self) -> Result<Connection, DatabaseError> {
        Ok(Connection { conn: self.connections.get().await?, _slot: None })
    }

    /// A connection for a list, a search or a report about one merchant or all. Their number is limited, so that
    /// slow ones leave connections for all other work, and those about one merchant leave half to others.
    pub async fn reader(&self, merchant: Option<&str>) -> Result<Connection, DatabaseError> {
        let slot = self.readers.acquire(merchant.unwrap_or_default());
        match tokio::time::timeout(self.acquire_timeout, slot).await {
            Ok(Ok(slot)) => Ok(Connection { _slot: Some(slot), ..self.get().await? }),
            Ok(Err(_)) | Err(_) => Err(DatabaseError::TooManyReaders),
        }
    }

    /// Checks that the database responds.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        self.get().await?.batch_execute("SELECT 1").await?;
        Ok(())
    }

    /// Records how much of the pool is in use, until the process ends.
    pub(crate) fn record_metrics(&self, tasks: &Tasks) {
        let gauge =
            |name, about| telemetry::meter().u64_gauge(name).with_description(about).build();
        let used = gauge("database_connections_in_use", "Database connections in use");
        let max = gauge("database_connections_max", "Size of the database pool");
        let waiting =
            gauge("database_connection_requests_pending", "Tasks that wait for a connection");
        let pool = self.clone();
        tasks.spawn_interval("pool metrics", METRICS_INTERVAL, move || {
            let status = pool.connections.status();
            for (gauge, value) in [
                (&used, status.size.saturating_sub(status.available)),
                (&max, status.max_size),
                (&waiting, status.waiting),
            ] {
                gauge.record(value.try_into().unwrap_or(u64::MAX), &[]);
            }
            std::future::ready(())
        });
    }
}
