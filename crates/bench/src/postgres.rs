//! Queries beside the measurements.

use anyhow::Context as _;
use tokio::task::JoinSet;
use tokio_postgres::types::{FromSqlOwned, ToSql};
use tokio_postgres::{Client, NoTls, Statement};

pub(crate) struct Postgres {
    client: Client,
    /// Runs the connection, and ends with it.
    _connection: JoinSet<Result<(), tokio_postgres::Error>>,
}

impl Postgres {
    pub(crate) async fn connect(url: &str) -> anyhow::Result<Self> {
        let (client, connection) =
            tokio_postgres::connect(url, NoTls).await.context("PostgreSQL does not respond")?;
        let mut running = JoinSet::new();
        running.spawn(connection);
        Ok(Self { client, _connection: running })
    }

    pub(crate) async fn execute(&self, statements: &str) -> anyhow::Result<()> {
        Ok(self.client.batch_execute(statements).await?)
    }

    /// The value of a query that returns one row with one column.
    pub(crate) async fn value<T: FromSqlOwned>(&self, query: &str) -> anyhow::Result<T> {
        Ok(self.client.query_one(query, &[]).await?.try_get(0)?)
    }

    /// Runs a statement with parameters.
    pub(crate) async fn run(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> anyhow::Result<()> {
        self.client.execute(statement, parameters).await?;
        Ok(())
    }

    pub(crate) async fn prepare(&self, statement: &str) -> anyhow::Result<Statement> {
        Ok(self.client.prepare(statement).await?)
    }
}
