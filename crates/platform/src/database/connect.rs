//! One connection to PostgreSQL and its parameters.

use std::{sync::Once, time::Duration};

use diesel::ConnectionError;
use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Settings;
use crate::{chain, client::client_tls};

/// Timeouts of a session in the server. Without them the server may keep the session of a lost machine,
/// and with it the leader's lock, for two hours. The last one ends a transaction whose client does
/// nothing; no transaction of ours pauses for a minute.
const SESSION_TIMEOUTS: &str = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 \
                                -c tcp_keepalives_count=3 -c tcp_user_timeout=25000 \
                                -c idle_in_transaction_session_timeout=60000";
/// JIT is off: over-estimated costs trigger a compilation that takes a second, and our statements take
/// milliseconds. The others make PostgreSQL take the index that has the rows in order, whatever its statistics say.
/// With a sequential scan, a plan that was made while a table was empty would read the whole table once it is full.
/// With an incremental sort, or with the default cost of a page, which is that of a disk, PostgreSQL sorts all rows of
/// a value that its statistics do not know.
const PLANNER: &str =
    "-c jit=off -c enable_seqscan=off -c enable_incremental_sort=off -c random_page_cost=1.1";
/// Turns translation off on a connection. Only a superuser, or a role with a grant, may do this.
const ENGLISH_MESSAGES: &str = "SELECT set_config('lc_messages', 'C', false) \
                                WHERE current_setting('lc_messages') NOT IN ('C', 'POSIX')";
/// Time until a connection to an unreachable server is closed: the TCP user timeout, and the idle time
/// before keepalive probes.
const UNREACHABLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Connection parameters. PostgreSQL uses the last of repeated options, and the options of the URL come
/// before `option`.
pub(super) fn postgres_config(
    service: &str,
    settings: &Settings,
    option: &str,
) -> anyhow::Result<tokio_postgres::Config> {
    let mut config = settings.postgres_config()?;
    let options = match config.get_options() {
        Some(of_url) => format!("{SESSION_TIMEOUTS} {PLANNER} {of_url} {option}"),
        None => format!("{SESSION_TIMEOUTS} {PLANNER} {option}"),
    };
    config
        .application_name(format!("backhaul-{service}"))
        .connect_timeout(settings.acquire_timeout)
        .tcp_user_timeout(UNREACHABLE_TIMEOUT)
        .keepalives_idle(UNREACHABLE_TIMEOUT)
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(2)
        .options(options);
    Ok(config)
}

pub(super) fn statement_timeout(settings: &Settings) -> String {
    format!("-c statement_timeout={}", settings.statement_timeout.as_millis())
}

pub(super) async fn connect(
    config: tokio_postgres::Config,
) -> Result<AsyncPgConnection, ConnectionError> {
    let tls = client_tls().map_err(|e| ConnectionError::BadConnection(e.to_string()))?;
    let (client, connection) = config
        .connect(MakeRustlsConnect::new(tls))
        .await
        .map_err(|error| ConnectionError::BadConnection(chain(&error)))?;
    let mut conn = AsyncPgConnection::try_from_client_and_connection(client, connection).await?;
    if let Err(error) = conn.batch_execute(ENGLISH_MESSAGES).await {
        static WARNED: Once = Once::new();
        let hint = "run ALTER ROLE ... SET lc_messages = 'C', or a timeout may be taken for a bug";
        WARNED.call_once(|| tracing::warn!(%error, hint, "cannot set lc_messages"));
    }
    Ok(conn)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[track_caller]
    fn check(url: &str, options: &str) {
        let settings = Settings {
            url: Some(SecretString::from(url)),
            max_connections: 1,
            max_readers: 1,
            acquire_timeout: Duration::from_secs(1),
            statement_timeout: Duration::from_secs(5),
        };
        let config = postgres_config("test", &settings, &statement_timeout(&settings)).unwrap();
        assert_eq!(
            config.get_options(),
            Some(format!("{SESSION_TIMEOUTS} {PLANNER} {options}").as_str())
        );
    }

    #[test]
    fn options_in_the_url_are_kept() {
        check("postgres://u@h/d", "-c statement_timeout=5000");
        check(
            "postgres://u@h/d?options=-c%20search_path%3Dmine",
            "-c search_path=mine -c statement_timeout=5000",
        );
    }
}
