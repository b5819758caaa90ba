//! The connections of a process to its database.

use std::time::Duration;

use diesel::ConnectionError;
use diesel_async::{
    AsyncPgConnection, SimpleAsyncConnection as _,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
        deadpool::{Object, Pool as Deadpool},
    },
};
use futures_util::FutureExt as _;
use tokio::runtime::Handle;

use super::{
    DatabaseError, Settings,
    connect::{connect, postgres_config, statement_timeout},
};
use crate::{Tasks, telemetry};

/// Interval at which the metrics of the pool are recorded.
const METRICS_INTERVAL: Duration = Duration::from_secs(2);

/// Connections to the service's own database.
#[derive(Clone)]
pub struct Pool(Deadpool<AsyncPgConnection>);

/// A connection of the pool, which returns to the pool when it is dropped.
pub type Connection = Object<AsyncPgConnection>;

impl Pool {
    /// A pool that opens connections when they are needed, so that a process can start before its
    /// database. Without `database.url` it has no connections. Call this on the main runtime:
    /// connections live there, not on the worker that needs one.
    pub fn new(service: &'static str, settings: &Settings) -> anyhow::Result<Self> {
        let postgres = match settings.url {
            Some(_) => Some(postgres_config(service, settings, &statement_timeout(settings))?),
            None => None,
        };
        let runtime = Handle::current();
        let mut config = ManagerConfig::default();
        config.recycling_method = RecyclingMethod::Fast;
        config.custom_setup = Box::new(move |_url| {
            let connecting = postgres.clone().map(|postgres| runtime.spawn(connect(postgres)));
            async move {
                let connecting =
                    connecting.ok_or_else(|| bad_connection(&"there is no database"))?;
                connecting.await.map_err(|error| bad_connection(&error))?
            }
            .boxed()
        });
        let manager = AsyncDieselConnectionManager::new_with_config("", config);
        let timeout = Some(settings.acquire_timeout);
        let pool = Deadpool::builder(manager)
            .max_size(settings.max_connections)
            .runtime(deadpool::Runtime::Tokio1)
            .wait_timeout(timeout)
            .create_timeout(timeout)
            .recycle_timeout(timeout)
            .build()?;
        Ok(Self(pool))
    }

    pub async fn get(&self) -> Result<Connection, DatabaseError> {
        Ok(self.0.get().await?)
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
            let status = pool.0.status();
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

fn bad_connection(reason: &dyn std::fmt::Display) -> ConnectionError {
    ConnectionError::BadConnection(reason.to_string())
}
