//! A database per test, cloned from a template that has the tables.

use diesel_async::{AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection as _};
use diesel_migrations::EmbeddedMigrations;
use platform::database::{Pool, Settings};
use uuid::Uuid;

use crate::connection::{count, execute, settings};
use crate::template::Template;
use crate::{clean_up, test_variable};

/// The number of connections to this database that were closed, as `n`.
pub const ENDED_SESSIONS: &str = "SELECT sessions - numbackends AS n FROM pg_stat_database \
                                  WHERE datname = current_database()";

/// A new database. Dropping the value drops the database.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// Creates a database on the server that `scripts/test` started.
    pub async fn create(migrations: Vec<EmbeddedMigrations>) -> Self {
        Self::create_on(&test_variable("BACKHAUL_TEST_POSTGRES_URL"), migrations).await
    }

    /// Creates a database on another server.
    pub async fn create_on(server: &str, migrations: Vec<EmbeddedMigrations>) -> Self {
        crate::show_logs();
        let name = format!("test_{}", Uuid::new_v4().simple());
        let database = Self { server: server.to_owned(), name };
        Template::new(server, &migrations).clone_to(&database.name, migrations).await;
        database
    }

    /// A database on the same server that does not exist yet.
    pub(crate) fn unused_database(&self) -> Self {
        let name = format!("test_{}", Uuid::new_v4().simple());
        Self { server: self.server.clone(), name }
    }

    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub fn url(&self) -> String {
        format!("{}/{}", self.server, self.name)
    }

    pub fn settings(&self) -> Settings {
        settings(self.url())
    }

    /// Executes statements that no service executes, for example to damage rows.
    pub async fn execute_raw(&self, statement: &str) {
        let mut conn = AsyncPgConnection::establish(&self.url()).await.unwrap();
        conn.batch_execute(statement).await.unwrap();
    }

    /// The value of a query that returns one integer, for example a count.
    pub async fn count(&self, query: &str) -> i64 {
        count(&mut AsyncPgConnection::establish(&self.url()).await.unwrap(), query).await
    }

    pub fn pool(&self) -> Pool {
        Pool::new("test", &self.settings()).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let server = self.server.clone();
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        clean_up(async move {
            // The test may have stopped its server, and then the database is gone anyway.
            if let Err(error) = execute(&server, &drop).await {
                eprintln!("{drop}: {error}");
            }
        });
    }
}
