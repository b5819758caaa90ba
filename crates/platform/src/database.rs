//! The pool of PostgreSQL connections and the migrations.
//!
//! A database that is down or slow is a fact of life: every wait has a bound, and every such
//! failure is [`ErrorKind::Unavailable`], so callers get 503 and consumers try again.

mod leader;
mod own;
mod page_bytes;
mod prepared;
mod retention;

use std::{sync::Once, time::Duration};

use anyhow::Context as _;
use diesel::{
    ConnectionError,
    migration::{Migration, MigrationSource},
    pg::Pg,
    result::{DatabaseErrorKind, Error as QueryError},
};
use diesel_async::{
    AsyncMigrationHarness, AsyncPgConnection, SimpleAsyncConnection as _,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod,
        deadpool::{Object, Pool as Deadpool, PoolError},
    },
};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};
use futures_util::FutureExt;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, de::Error as _};
use tokio::runtime::Handle;
use tokio_postgres_rustls::MakeRustlsConnect;

pub use leader::{LeaderTask, PollOutcome};
pub use page_bytes::{is_truncated, limit_page_bytes};
pub use prepared::{Prepared, prepared};
pub use retention::delete_older_than;

use crate::{ErrorKind, Failure, Tasks, client::client_tls, telemetry};

/// How soon the server lets go of a session whose client is lost with its machine: until then it
/// keeps the leader's lock. Left to its system it may take two hours. And of one whose client stands
/// still within a transaction, with all it has locked: none of ours pauses for so long.
const WATCHED: &str = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 \
                       -c tcp_keepalives_count=3 -c tcp_user_timeout=25000 \
                       -c idle_in_transaction_session_timeout=60000";
/// JIT is off: over-estimated costs trigger a compilation that takes a second, and our statements take
/// milliseconds.
const NOT_COMPILED: &str = "-c jit=off";
/// Turns translation off on a connection. Only a superuser, or a role with a grant, may do this.
const ENGLISH_MESSAGES: &str = "SELECT set_config('lc_messages', 'C', false) \
                                WHERE current_setting('lc_messages') NOT IN ('C', 'POSIX')";
/// Time until a connection to an unreachable server is closed: the TCP user timeout, and the idle time
/// before keepalive probes.
const VANISHED: Duration = Duration::from_secs(5);
/// How often the pool is looked at for the metrics.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// `[database]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(deserialize_with = "usable")]
    pub url: SecretString,
    pub max_connections: usize,
    #[serde(with = "humantime_serde")]
    pub acquire_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub statement_timeout: Duration,
}

/// Refuses a bad URL where settings are read, so that nothing starts with it.
fn usable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SecretString, D::Error> {
    let url = SecretString::deserialize(deserializer)?;
    parse(&url).map_err(|error| D::Error::custom(format!("{error:#}")))?;
    Ok(url)
}

/// Connections to this service's own database.
#[derive(Clone)]
pub struct Pool(Deadpool<AsyncPgConnection>);

/// A connection out of the pool; it goes back when dropped.
pub type Connection = Object<AsyncPgConnection>;

/// An error of the database or of the connection to it.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("no database connection")]
    Pool(#[from] PoolError),
    #[error("database query failed")]
    Query(#[from] QueryError),
}

impl DatabaseError {
    /// The name of the constraint that was broken, if one was.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Query(QueryError::DatabaseError(_, information)) => information.constraint_name(),
            _ => None,
        }
    }
}

impl Failure for DatabaseError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Pool(_) => ErrorKind::Unavailable,
            Self::Query(error) => error.kind(),
        }
    }
}

impl Failure for QueryError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::Missing,
            Self::BrokenTransactionManager => ErrorKind::Unavailable,
            Self::RollbackErrorOnCommit { commit_error, .. } => commit_error.kind(),
            Self::DatabaseError(kind, information) => match kind {
                DatabaseErrorKind::ClosedConnection
                | DatabaseErrorKind::UnableToSendCommand
                | DatabaseErrorKind::SerializationFailure
                | DatabaseErrorKind::ReadOnlyTransaction => ErrorKind::Unavailable,
                // A row without a partition; maintenance is about to create it.
                DatabaseErrorKind::CheckViolation if information.constraint_name().is_none() => {
                    ErrorKind::Unavailable
                }
                _ if is_transient(information.message()) => ErrorKind::Unavailable,
                _ => ErrorKind::Internal,
            },
            _ => ErrorKind::Internal,
        }
    }
}

/// Whether the same statement may succeed later. Diesel does not expose the SQLSTATE, so the message
/// decides; [`ENGLISH_MESSAGES`] makes the server send it untranslated.
fn is_transient(message: &str) -> bool {
    const TRANSIENT: [&str; 9] = [
        "canceling statement due to",
        "terminating connection due to",
        "the database system is",
        // Transaction ids run out until a vacuum.
        "database is not accepting commands",
        "deadlock detected",
        "remaining connection slots are reserved",
        "could not extend file",
        "out of memory",
        "out of shared memory",
    ];
    const DISK_FULL: &str = "No space left on device";
    TRANSIENT.iter().any(|text| message.starts_with(text)) || message.ends_with(DISK_FULL)
}

/// Whether a statement exceeded its timeout. The database is up then, so the same statement may
/// time out again.
pub fn timed_out(error: &(dyn std::error::Error + 'static)) -> bool {
    const WORDS: &str = "canceling statement due to statement timeout";
    let one = |error: &(dyn std::error::Error + 'static)| match error.downcast_ref() {
        Some(QueryError::DatabaseError(_, information)) => information.message() == WORDS,
        _ => false,
    };
    std::iter::successors(Some(error), |error| error.source()).any(one)
}

impl Pool {
    /// A pool that connects when first asked, so a process can start before its database.
    /// Call it on the main runtime: connections live there, not on the worker that asked.
    pub fn new(service: &'static str, settings: &Settings) -> anyhow::Result<Self> {
        let postgres = postgres_config(service, settings, &statement_timeout(settings))?;
        let home = Handle::current();
        let mut config = ManagerConfig::default();
        config.recycling_method = RecyclingMethod::Fast;
        config.custom_setup = Box::new(move |_url| {
            let connecting = home.spawn(connect(postgres.clone()));
            async move { connecting.await.map_err(|e| ConnectionError::BadConnection(e.to_string()))? }.boxed()
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

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), DatabaseError> {
        self.get().await?.batch_execute("SELECT 1").await?;
        Ok(())
    }

    /// Shows how much of the pool is in use, for as long as the process lives.
    pub(crate) fn watch(&self, tasks: &Tasks) {
        let gauge =
            |name, about| telemetry::meter().u64_gauge(name).with_description(about).build();
        let used = gauge("database_connections_used", "Database connections in use");
        let most = gauge("database_connections_max", "The most there may be");
        let waiting = gauge("database_connections_waiting", "Those who wait for one");
        let pool = self.clone();
        tasks.spawn_interval("pool", WATCH_EVERY, move || {
            let status = pool.0.status();
            for (gauge, value) in [
                (&used, status.size.saturating_sub(status.available)),
                (&most, status.max_size),
                (&waiting, status.waiting),
            ] {
                gauge.record(value.try_into().unwrap_or(u64::MAX), &[]);
            }
            std::future::ready(())
        });
    }
}

fn parse(url: &SecretString) -> anyhow::Result<tokio_postgres::Config> {
    let config: tokio_postgres::Config =
        url.expose_secret().parse().context("it is not a PostgreSQL URL")?;
    let names_host = !config.get_hosts().is_empty() || !config.get_hostaddrs().is_empty();
    anyhow::ensure!(names_host, "it names no host");
    Ok(config)
}

/// Connection parameters. PostgreSQL uses the last of repeated options, and the options of the URL come
/// before `option`.
fn postgres_config(
    service: &str,
    settings: &Settings,
    option: &str,
) -> anyhow::Result<tokio_postgres::Config> {
    let mut config = parse(&settings.url).context("database.url")?;
    let options = match config.get_options() {
        Some(given) => format!("{WATCHED} {NOT_COMPILED} {given} {option}"),
        None => format!("{WATCHED} {NOT_COMPILED} {option}"),
    };
    config
        .application_name(format!("backhaul-{service}"))
        .connect_timeout(settings.acquire_timeout)
        .tcp_user_timeout(VANISHED)
        .keepalives_idle(VANISHED)
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(2)
        .options(options);
    Ok(config)
}

fn statement_timeout(settings: &Settings) -> String {
    format!("-c statement_timeout={}", settings.statement_timeout.as_millis())
}

async fn connect(config: tokio_postgres::Config) -> Result<AsyncPgConnection, ConnectionError> {
    let failed = |error: &dyn std::error::Error| {
        ConnectionError::BadConnection(crate::failure::chain(error))
    };
    let tls = client_tls().map_err(|e| ConnectionError::BadConnection(e.to_string()))?;
    let (client, connection) =
        config.connect(MakeRustlsConnect::new(tls)).await.map_err(|e| failed(&e))?;
    let mut conn = AsyncPgConnection::try_from_client_and_connection(client, connection).await?;
    if let Err(error) = conn.batch_execute(ENGLISH_MESSAGES).await {
        static WARNED: Once = Once::new();
        let hint = "run ALTER ROLE ... SET lc_messages = 'C', or a timeout may be taken for a bug";
        WARNED.call_once(|| tracing::warn!(%error, hint, "cannot set lc_messages"));
    }
    Ok(conn)
}

/// Runs what is missing of the given migrations and returns the names of those that ran.
pub async fn migrate(
    service: &'static str,
    settings: &Settings,
    sources: Vec<EmbeddedMigrations>,
) -> anyhow::Result<Vec<String>> {
    // Building an index may take longer than a request ever should.
    let config = postgres_config(service, settings, "-c lock_timeout=10000")?;
    let connection = connect(config).await.context("cannot reach the database")?;
    run_blocking(connection, move |harness| {
        let mut ran = Vec::new();
        for source in sources {
            let versions =
                harness.run_pending_migrations(source).map_err(|e| anyhow::anyhow!(e))?;
            ran.extend(versions.iter().map(ToString::to_string));
        }
        Ok(ran)
    })
    .await
}

/// The migrations that have not run yet.
pub async fn pending(
    service: &'static str,
    settings: &Settings,
    sources: Vec<EmbeddedMigrations>,
) -> anyhow::Result<Vec<String>> {
    let config = postgres_config(service, settings, &statement_timeout(settings))?;
    let mut connection = connect(config).await?;
    let ran = applied(&mut connection).await?;
    let mut missing = Vec::new();
    for source in sources {
        let all: Vec<Box<dyn Migration<Pg>>> =
            source.migrations().map_err(|e| anyhow::anyhow!(e))?;
        let names = all
            .iter()
            .filter(|m| !ran.contains(&m.name().version().to_string()))
            .map(|m| m.name().to_string());
        missing.extend(names);
    }
    Ok(missing)
}

/// Versions that have run. Only read: the role that serves may not be one that makes tables, and
/// the library would try to make its own.
async fn applied(conn: &mut AsyncPgConnection) -> anyhow::Result<Vec<String>> {
    use diesel_async::RunQueryDsl as _;
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Text)]
        text: String,
    }
    let tables = "SELECT relname::text AS text FROM pg_class \
                  WHERE oid = to_regclass('__diesel_schema_migrations')";
    if diesel::sql_query(tables).load::<Row>(conn).await?.is_empty() {
        return Ok(Vec::new());
    }
    let versions = "SELECT version AS text FROM __diesel_schema_migrations";
    let rows: Vec<Row> = diesel::sql_query(versions).load(conn).await?;
    Ok(rows.into_iter().map(|row| row.text).collect())
}

async fn run_blocking<T: Send + 'static>(
    connection: AsyncPgConnection,
    work: impl FnOnce(&mut AsyncMigrationHarness<AsyncPgConnection>) -> anyhow::Result<T>
    + Send
    + 'static,
) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(move || work(&mut AsyncMigrationHarness::new(connection))).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, options: &str) {
        let settings = Settings {
            url: SecretString::from(url),
            max_connections: 1,
            acquire_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(5),
        };
        let config = postgres_config("test", &settings, &statement_timeout(&settings)).unwrap();
        assert_eq!(
            config.get_options(),
            Some(format!("{WATCHED} {NOT_COMPILED} {options}").as_str())
        );
    }

    #[test]
    fn a_server_without_disk_or_memory_is_unavailable() {
        let kind = |message: &str| {
            let unknown = DatabaseErrorKind::Unknown;
            QueryError::DatabaseError(unknown, Box::new(message.to_owned())).kind()
        };
        for message in [
            "could not extend file \"base/5/16384\": No space left on device",
            "could not extend file \"base/5/16384\": wrote only 4096 of 8192 bytes at block 7",
            "could not write to file \"base/pgsql_tmp/pgsql_tmp7.0\": No space left on device",
            "out of memory",
            "out of shared memory",
        ] {
            assert_eq!(kind(message), ErrorKind::Unavailable, "{message}");
        }
        assert_eq!(kind("invalid memory alloc request size 1073741824"), ErrorKind::Internal);
        assert_eq!(kind("relation \"orders\" does not exist"), ErrorKind::Internal);
    }

    #[test]
    fn options_in_the_url_stay() {
        check("postgres://u@h/d", "-c statement_timeout=5000");
        check(
            "postgres://u@h/d?options=-c%20search_path%3Dmine",
            "-c search_path=mine -c statement_timeout=5000",
        );
    }
}
