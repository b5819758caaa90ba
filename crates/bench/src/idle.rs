//! CPU time and memory of five services, PostgreSQL and RabbitMQ while nothing happens.

use std::time::Duration;

use platform::Service;
use testkit::{Database, Namespace, sealing_keys};

use crate::auth_process::Auth;
use crate::cpu::CpuMeter;
use crate::process::Program;
use crate::report::Report;
use crate::size::Size;

/// Time for caches to fill after the start, and for the servers to finish their own start.
const WARM_UP: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_secs(30);

/// A running service.
struct Idle {
    name: &'static str,
    program: Program,
    _database: Option<Database>,
}

pub(crate) async fn run(size: Size) -> anyhow::Result<Report> {
    let auth = Auth::start().await?;
    let sealing = ("SEALING__KEYS", sealing_keys());
    let proofs = ("SHOPPER__PROOF_KEYS", sealing_keys());
    let mut services = vec![
        start::<order_intake::App>(&auth, &[]).await?,
        start::<rma_engine::App>(&auth, &[sealing, proofs]).await?,
        start::<exchange::App>(&auth, &[sealing, proofs]).await?,
        start::<warehouse_notifier::App>(&auth, &[sealing]).await?,
    ];
    services.insert(0, Idle { name: auth::App::NAME, program: auth.program, _database: None });
    let meter = CpuMeter::find().await?;
    tokio::time::sleep(size.time(WARM_UP)).await;

    let period = size.time(PERIOD);
    let programs = || services.iter().map(|service| &service.program);
    let own_before = cpu_of_each(&services)?;
    let before = meter.read(programs())?;
    tokio::time::sleep(period).await;
    let cost = meter.read(programs())?.since(&before, 1);
    let own = cpu_of_each(&services)?;
    let mut report = Report::default();
    // Microseconds of CPU time in the period, as a percentage of a core.
    let percent = |micros: f64| micros / (period.as_secs_f64() * 1e6) * 100.0;
    report.figure("cpu", percent(cost.all()), "% of a core");
    report.figure("cpu.postgres", percent(cost.postgres()), "% of a core");
    report.figure("cpu.rabbitmq", percent(cost.rabbitmq()), "% of a core");
    let mut memory = 0.0;
    for ((service, now), before) in services.iter().zip(own).zip(own_before) {
        let cpu = now.saturating_sub(before).as_secs_f64() * 1e6;
        report.figure(&format!("cpu.{}", service.name), percent(cpu), "% of a core");
        let (resident, _) = service.program.memory()?;
        report.figure(&format!("memory.{}", service.name), resident, "MiB");
        memory += resident;
    }
    report.figure("services_memory", memory, "MiB");
    Ok(report)
}

async fn start<S: Service>(auth: &Auth, settings: &[(&str, &str)]) -> anyhow::Result<Idle> {
    let database = Database::create(S::migrations()).await;
    let namespace: &Namespace = &auth.namespace;
    let program =
        Program::start_service::<S>(&database, namespace, &auth.identity_settings(), settings)
            .await?;
    Ok(Idle { name: S::NAME, program, _database: Some(database) })
}

fn cpu_of_each(services: &[Idle]) -> anyhow::Result<Vec<Duration>> {
    services.iter().map(|service| service.program.cpu()).collect()
}
