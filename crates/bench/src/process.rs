//! A program run beside this one, and the CPU time it used.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use anyhow::Context as _;
use tokio::process::{Child, Command};

/// The kernel counts CPU time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// A running program; killed when dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) url: String,
}

impl Program {
    /// Starts a program that lies beside this one and waits until it answers at `ready`.
    pub(crate) async fn start(
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
        port: u16,
        ready: &str,
    ) -> anyhow::Result<Self> {
        let program = beside(name)?;
        let child = Command::new(&program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let url = format!("http://127.0.0.1:{port}");
        let client = platform::http_client(Duration::from_secs(2))?;
        testkit::eventually(&format!("{name} is ready"), Duration::from_secs(30), async || {
            client
                .get(format!("{url}{ready}"))
                .send()
                .await
                .ok()?
                .status()
                .is_success()
                .then_some(())
        })
        .await;
        Ok(Self { child, url })
    }

    fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("the program has ended")
    }

    /// Resident memory in mebibytes: now, and at its highest.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let mebibytes = |name: &str| -> anyhow::Result<f64> {
            let line =
                status.lines().find_map(|line| line.strip_prefix(name)).context("no memory")?;
            let kibibytes: f64 = line.split_whitespace().next().unwrap_or("0").parse()?;
            Ok(kibibytes / 1024.0)
        };
        Ok((mebibytes("VmRSS:")?, mebibytes("VmHWM:")?))
    }

    /// CPU time used so far, user and system together.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        cpu_of(&self.pid()?.to_string())
    }
}

/// CPU time that a process used so far: one by its number, or "self".
pub(crate) fn cpu_of(process: &str) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may hold anything; what follows it is numbers.
    let (_, numbers) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    let ticks = numbers.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(Duration::from_secs_f64(ticks.sum::<Result<f64, _>>()? / TICKS_PER_SECOND))
}

fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().context("this program lies nowhere")?.join(name))
}

/// A port that is free now.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
