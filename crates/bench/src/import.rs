//! An import with `backhaul orders import`, compared with `COPY` of the same rows into tables with the same
//! indexes. The two alternate.

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use domain::order::sample::document;
use messaging::RELAY_LOCK;
use order_intake::App;
use platform::Service as _;
use testkit::Database;

use crate::auth_process::Auth;
use crate::cpu::CpuMeter;
use crate::intake_process::orders;
use crate::postgres::Postgres;
use crate::proc_stat::cpu_of_exited_children;
use crate::process::{Program, program_path};
use crate::report::Report;
use crate::size::{Size, count};
use crate::totals::micros;

const MERCHANT: &str = "bench";
const ROUNDS: usize = 3;
/// Orders per round.
const ROUND_ORDERS: usize = 30_000;
const TIMEOUT: Duration = Duration::from_secs(60);
/// The tables with the rows of an order and its event.
const TABLES: [&str; 3] = ["orders", "order_lines", "outbox"];

/// The order intake of one merchant, which publishes no events, and the merchant's client.
struct Fixture {
    auth: Auth,
    intake: Program,
    postgres: Postgres,
    client_id: String,
    client_secret: String,
    _database: Database,
}

/// Totals of all rounds.
#[derive(Default)]
struct ImportTotals {
    orders: usize,
    import: Duration,
    copy: Duration,
    importer_cpu: Duration,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let mut fixture = Fixture::start().await?;
    let (meter, folder) = (CpuMeter::find().await?, tempfile::tempdir()?);
    let mut orders = orders(3)?.map(|order| document(&order).to_string());
    let (mut totals, mut report) = (ImportTotals::default(), Report::default());
    let mut servers_cpu = 0.0;
    for round in 0..size.rounds(ROUNDS) {
        let (file, number) =
            (folder.path().join(format!("{round}.ndjson")), size.items(ROUND_ORDERS));
        write_lines(&file, orders.by_ref().take(number))?;
        let before = meter.read([&fixture.intake])?;
        fixture.import(&file, &mut totals)?;
        servers_cpu += meter.read([&fixture.intake])?.since(&before, 1).all();
        totals.orders += number;
        fixture.copy(folder.path(), number, &mut totals).await?;
    }
    let (items, import, copy) =
        (count(totals.orders), totals.import.as_secs_f64(), totals.copy.as_secs_f64());
    report.figure("per_second", items / import, "orders/s");
    report.figure("copy.per_second", items / copy, "orders/s");
    report.figure("rate_ratio", copy / import, "import/COPY");
    report.figure("importer_cpu", micros(totals.importer_cpu) / items, "CPU-us each");
    report.figure("servers_cpu", servers_cpu / items, "CPU-us each");
    Ok(report)
}

impl Fixture {
    async fn start() -> anyhow::Result<Self> {
        let (auth, database) = (Auth::start().await?, Database::create(App::migrations()).await);
        let mut postgres = Postgres::connect(&database.url()).await?;
        // The lock keeps the relay from publishing, because COPY publishes nothing.
        postgres.execute(&format!("SELECT pg_advisory_lock({RELAY_LOCK})")).await?;
        for table in TABLES {
            let create = format!("CREATE TABLE copied_{table} (LIKE {table} INCLUDING ALL)");
            postgres.execute(&create).await?;
        }
        let intake = Program::start_service::<App>(
            &database,
            &auth.namespace,
            &auth.identity_settings(),
            &[],
        )
        .await?;
        auth.create_merchant(MERCHANT).await?;
        let (client_id, client_secret) = auth.create_client(MERCHANT, "orders").await?;
        let token = auth.token(&client_id, &client_secret).await?;
        let client = platform::http_client(Duration::from_secs(5))?;
        let unknown_order = format!("{}/v1/orders/none", intake.url);
        testkit::eventually("the merchant is replicated", TIMEOUT, async || {
            let response = client.get(&unknown_order).bearer_auth(&token).send().await.ok()?;
            (response.status() == 404).then_some(())
        })
        .await;
        Ok(Self { auth, intake, postgres, client_id, client_secret, _database: database })
    }

    /// Imports a file with the command line.
    fn import(&self, file: &Path, totals: &mut ImportTotals) -> anyhow::Result<()> {
        let (started, before) = (Instant::now(), cpu_of_exited_children()?);
        let output = Command::new(program_path("backhaul")?)
            .args(["orders", "import", "--json"])
            .arg(file)
            .env("AUTH_URL", &self.auth.program.url)
            .env("ORDERS_URL", &self.intake.url)
            .env("CLIENT_ID", &self.client_id)
            .env("CLIENT_SECRET", &self.client_secret)
            .output()?;
        let error = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "the import failed: {error}");
        totals.import += started.elapsed();
        totals.importer_cpu += cpu_of_exited_children()?.saturating_sub(before);
        Ok(())
    }

    /// Writes the imported rows to files and copies them from there. All tables are empty afterwards.
    async fn copy(
        &mut self,
        folder: &Path,
        orders: usize,
        totals: &mut ImportTotals,
    ) -> anyhow::Result<()> {
        let imported = self.postgres.count("SELECT count(*) FROM orders").await?;
        anyhow::ensure!(imported == i64::try_from(orders)?, "{imported} orders were imported");
        let transfers = |prefix: &str, direction: &str| {
            let copy = |table| {
                let file = folder.join(table);
                format!("\\copy {prefix}{table} {direction} '{}'", file.display())
            };
            TABLES.map(copy).to_vec()
        };
        self.postgres.psql(&transfers("", "TO"))?;
        self.postgres.execute("CHECKPOINT").await?;
        let started = Instant::now();
        self.postgres.psql(&transfers("copied_", "FROM"))?;
        totals.copy += started.elapsed();
        for table in TABLES {
            self.postgres.execute(&format!("TRUNCATE {table}, copied_{table}")).await?;
        }
        self.postgres.execute("CHECKPOINT").await
    }
}

fn write_lines(file: &Path, lines: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut file = BufWriter::new(File::create(file)?);
    for line in lines {
        writeln!(file, "{line}")?;
    }
    Ok(file.flush()?)
}
