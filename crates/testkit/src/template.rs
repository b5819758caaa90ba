//! Template databases: migrated once per test program, cloned for each test.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use diesel::QueryableByName;
use diesel::migration::{Migration, MigrationSource as _};
use diesel::pg::Pg;
use diesel::sql_types::Text;
use diesel_async::{AsyncPgConnection, RunQueryDsl as _, SimpleAsyncConnection as _};
use diesel_migrations::EmbeddedMigrations;
use platform::database::migrate;

use crate::connection::{connect, execute, settings, try_count};

/// A database with the tables of a set of migrations.
pub(crate) struct Template {
    server: String,
    /// The test program and the set of migrations.
    family: u64,
    /// The build of the test program, which embeds the migrations.
    build: u64,
}

impl Template {
    pub(crate) fn new(server: &str, sources: &[EmbeddedMigrations]) -> Self {
        let program = std::env::current_exe().unwrap();
        let mut family = DefaultHasher::new();
        let mut build = DefaultHasher::new();
        program.hash(&mut family);
        for source in sources {
            let migrations: Vec<Box<dyn Migration<Pg>>> = source.migrations().unwrap();
            migrations.iter().for_each(|it| it.name().to_string().hash(&mut family));
        }
        std::fs::metadata(program).unwrap().modified().unwrap().hash(&mut build);
        Self { server: server.to_owned(), family: family.finish(), build: build.finish() }
    }

    fn name(&self) -> String {
        format!("template_{:016x}_{:016x}", self.family, self.build)
    }

    /// Creates a database with the tables.
    pub(crate) async fn clone_to(&self, database: &str, sources: Vec<EmbeddedMigrations>) {
        if sources.is_empty() {
            return execute(&self.server, &format!("CREATE DATABASE {database}")).await.unwrap();
        }
        self.prepare(sources).await;
        let clone = format!("CREATE DATABASE {database} TEMPLATE {}", self.name());
        execute(&self.server, &clone).await.unwrap();
    }

    /// Creates the template, unless it exists. The lock makes other tests and test programs wait.
    async fn prepare(&self, sources: Vec<EmbeddedMigrations>) {
        let name = self.name();
        let family = self.family;
        let mut conn = connect(&self.server).await.unwrap();
        let lock = format!("SELECT pg_advisory_lock({})", family.cast_signed());
        conn.batch_execute(&lock).await.unwrap();
        let existing = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
        if try_count(&mut conn, &existing).await.unwrap() > 0 {
            return;
        }
        // Another name until it is complete, so that an interrupted migration leaves no template.
        let draft = format!("template_{family:016x}_draft");
        self.drop_older(&mut conn).await;
        conn.batch_execute(&format!("CREATE DATABASE {draft}")).await.unwrap();
        migrate("test", &settings(format!("{}/{draft}", self.server)), sources).await.unwrap();
        // A database in use can be neither renamed nor cloned.
        for statement in [
            format!("ALTER DATABASE {draft} ALLOW_CONNECTIONS false"),
            format!(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
                 WHERE datname = '{draft}'"
            ),
            format!("ALTER DATABASE {draft} RENAME TO {name}"),
        ] {
            conn.batch_execute(&statement).await.unwrap();
        }
    }

    /// Drops the templates of earlier builds of this test program.
    async fn drop_older(&self, conn: &mut AsyncPgConnection) {
        #[derive(QueryableByName)]
        struct Older {
            #[diesel(sql_type = Text)]
            name: String,
        }
        let query = diesel::sql_query(
            "SELECT datname::text AS name FROM pg_database WHERE datname LIKE $1 || '%'",
        );
        let older: Vec<Older> = query
            .bind::<Text, _>(format!("template_{:016x}_", self.family))
            .load(conn)
            .await
            .unwrap();
        for Older { name } in older {
            conn.batch_execute(&format!("DROP DATABASE {name} WITH (FORCE)")).await.unwrap();
        }
    }
}
