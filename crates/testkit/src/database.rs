//! A database of its own for each test.

use diesel_async::{AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _};
use diesel_migrations::EmbeddedMigrations;
use platform::database::{Pool, Settings, migrate};
use secrecy::SecretString;
use std::time::Duration;
use uuid::Uuid;

use crate::{clean_up, given};

/// How many connections to this database were made and are gone again, as `n`.
pub const ENDED_SESSIONS: &str = "SELECT sessions - numbackends AS n FROM pg_stat_database \
                                  WHERE datname = current_database()";

/// A fresh database; gone when dropped.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// On the server that `scripts/test` started.
    pub async fn create(migrations: Vec<EmbeddedMigrations>) -> Self {
        Self::create_on(&given("BACKHAUL_TEST_POSTGRES_URL"), migrations).await
    }

    /// On a server of the test's own.
    pub async fn create_on(server: &str, migrations: Vec<EmbeddedMigrations>) -> Self {
        crate::show_logs();
        let name = format!("test_{}", Uuid::new_v4().simple());
        let database = Self { server: server.to_owned(), name };
        execute(server, &format!("CREATE DATABASE {}", database.name)).await.unwrap();
        migrate("test", &database.settings(), migrations).await.unwrap();
        database
    }

    pub fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    pub fn settings(&self) -> Settings {
        Settings {
            url: SecretString::from(self.url()),
            max_connections: 8,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(5),
        }
    }

    /// Does something to this database that no service would.
    pub async fn execute_raw(&self, statement: &str) {
        let mut conn = AsyncPgConnection::establish(&self.url()).await.unwrap();
        conn.batch_execute(statement).await.unwrap();
    }

    pub fn pool(&self) -> Pool {
        Pool::new("test", &self.settings()).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, drop) =
            (self.server.clone(), format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        clean_up(async move {
            // The test may have stopped its server, and then the database is gone anyway.
            drop_quietly(&server, &drop).await;
        });
    }
}

async fn drop_quietly(server: &str, statement: &str) {
    if let Err(error) = execute(server, statement).await {
        eprintln!("{statement}: {error}");
    }
}

async fn execute(server: &str, statement: &str) -> anyhow::Result<()> {
    let mut conn = AsyncPgConnection::establish(&format!("{server}/postgres")).await?;
    Ok(conn.batch_execute(statement).await?)
}
