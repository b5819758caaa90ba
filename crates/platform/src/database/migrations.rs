//! Migrations: applying them, and finding those that are missing.

use anyhow::Context as _;
use diesel::{
    migration::{Migration, MigrationSource},
    pg::Pg,
};
use diesel_async::{AsyncMigrationHarness, AsyncPgConnection, RunQueryDsl as _};
use diesel_migrations::{EmbeddedMigrations, MigrationHarness};

use super::{
    Settings,
    connect::{connect, postgres_config, statement_timeout},
};

/// Applies the migrations that are missing and returns their names.
pub async fn migrate(
    service: &'static str,
    settings: &Settings,
    sources: Vec<EmbeddedMigrations>,
) -> anyhow::Result<Vec<String>> {
    // There is no statement timeout: building an index may take long.
    let config = postgres_config(service, settings, "-c lock_timeout=10000")?;
    let connection = connect(config).await.context("cannot connect to the database")?;
    run_blocking(connection, move |harness| {
        let mut applied = Vec::new();
        for source in sources {
            let versions = harness
                .run_pending_migrations(source)
                .map_err(|error| explain(service, &*error))?;
            applied.extend(versions.iter().map(ToString::to_string));
        }
        Ok(applied)
    })
    .await
}

/// The error of a migration. The role of the service may not create tables.
fn explain(service: &str, error: &(dyn std::error::Error + Send + Sync)) -> anyhow::Error {
    let text = error.to_string();
    if !text.contains("permission denied") && !text.contains("must be owner") {
        return anyhow::anyhow!(text);
    }
    let role = service.replace('-', "_");
    anyhow::anyhow!("{text}: `migrate` needs a role that may create tables, such as {role}_migrate")
}

/// The migrations that are missing in the database.
pub async fn pending(
    service: &'static str,
    settings: &Settings,
    sources: Vec<EmbeddedMigrations>,
) -> anyhow::Result<Vec<String>> {
    let config = postgres_config(service, settings, &statement_timeout(settings))?;
    let mut connection = connect(config).await?;
    let applied = applied_versions(&mut connection).await?;
    let mut missing = Vec::new();
    for source in sources {
        let all: Vec<Box<dyn Migration<Pg>>> =
            source.migrations().map_err(|e| anyhow::anyhow!(e))?;
        let names = all
            .iter()
            .filter(|m| !applied.contains(&m.name().version().to_string()))
            .map(|m| m.name().to_string());
        missing.extend(names);
    }
    Ok(missing)
}

/// The versions that were applied. This only reads: the role of a running service may not be allowed
/// to create tables, and the library would try to create its own.
async fn applied_versions(conn: &mut AsyncPgConnection) -> anyhow::Result<Vec<String>> {
    crate::rows! {
        struct Row {
            text: String,
        }
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
