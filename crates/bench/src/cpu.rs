//! CPU time of services, PostgreSQL and RabbitMQ.

use std::time::Duration;

use crate::{
    postgres::Postgres,
    proc_stat::cpu_with_children,
    process::{Program, test_setting},
    rabbitmq,
    report::Report,
    size::count,
};

/// The processes of the servers.
pub(crate) struct CpuMeter {
    postgres_pid: u32,
    rabbitmq_pid: u32,
}

/// CPU time used so far.
#[derive(Clone, Copy)]
pub(crate) struct CpuTime {
    service: Duration,
    postgres: Duration,
    rabbitmq: Duration,
}

/// CPU microseconds per item.
#[derive(Clone, Copy)]
pub(crate) struct CpuCost {
    service: f64,
    postgres: f64,
    rabbitmq: f64,
}

impl CpuMeter {
    pub(crate) async fn find() -> anyhow::Result<Self> {
        let server = test_setting("BACKHAUL_TEST_POSTGRES_URL")?;
        let postgres = Postgres::connect(&format!("{server}/postgres")).await?;
        Ok(Self { postgres_pid: postgres.pid(), rabbitmq_pid: rabbitmq::pid().await? })
    }

    pub(crate) fn read<'a>(
        &self,
        services: impl IntoIterator<Item = &'a Program>,
    ) -> anyhow::Result<CpuTime> {
        let services: Vec<_> = services.into_iter().map(Program::cpu).collect::<Result<_, _>>()?;
        Ok(CpuTime {
            service: services.into_iter().sum(),
            postgres: cpu_with_children(self.postgres_pid)?,
            rabbitmq: cpu_with_children(self.rabbitmq_pid)?,
        })
    }
}

impl CpuTime {
    pub(crate) fn since(&self, before: &Self, items: usize) -> CpuCost {
        let each = |now: Duration, then: Duration| {
            now.saturating_sub(then).as_secs_f64() * 1e6 / count(items)
        };
        CpuCost {
            service: each(self.service, before.service),
            postgres: each(self.postgres, before.postgres),
            rabbitmq: each(self.rabbitmq, before.rabbitmq),
        }
    }
}

impl CpuCost {
    pub(crate) fn all(&self) -> f64 {
        self.service + self.postgres + self.rabbitmq
    }

    pub(crate) fn postgres(&self) -> f64 {
        self.postgres
    }

    pub(crate) fn rabbitmq(&self) -> f64 {
        self.rabbitmq
    }

    /// The growth in percent.
    pub(crate) fn growth(&self, before: &Self) -> f64 {
        (self.all() / before.all() - 1.0) * 100.0
    }

    /// Reports the sum as `<name>.cpu`, and its parts.
    pub(crate) fn report(&self, report: &mut Report, name: &str) {
        report.figure(&format!("{name}.cpu"), self.all(), "CPU-us each");
        let parts =
            [("service", self.service), ("postgres", self.postgres), ("rabbitmq", self.rabbitmq)];
        for (process, cost) in parts {
            report.figure(&format!("{name}.cpu.{process}"), cost, "CPU-us each");
        }
    }
}
