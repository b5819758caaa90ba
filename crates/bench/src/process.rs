//! Child processes, with their CPU time and memory.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use anyhow::Context as _;
use tokio::process::{Child, Command};

/// The kernel counts CPU time in hundredths of a second.
const TICKS_PER_SECOND: f64 = 100.0;

/// A child process, which is killed when dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) url: String,
}

impl Program {
    /// Starts a program from the folder of this one and waits until the path `ready` returns a success.
    pub(crate) async fn start(
        name: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
        port: u16,
        ready: &str,
    ) -> anyhow::Result<Self> {
        let program = program_path(name)?;
        let child = Command::new(&program)
            .args(arguments)
            .envs(environment.iter().copied())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
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
        self.child.id().context("the process has exited")
    }

    /// Current and peak resident memory in MiB.
    pub(crate) fn memory(&self) -> anyhow::Result<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let mebibytes = |name: &str| -> anyhow::Result<f64> {
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .with_context(|| format!("/proc/PID/status has no {name}"))?;
            let kibibytes: f64 = line.split_whitespace().next().unwrap_or("0").parse()?;
            Ok(kibibytes / 1024.0)
        };
        Ok((mebibytes("VmRSS:")?, mebibytes("VmHWM:")?))
    }

    /// User and system CPU time so far.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        cpu_of(&self.pid()?.to_string())
    }
}

/// User and system CPU time of a process so far, by pid or "self".
pub(crate) fn cpu_of(process: &str) -> anyhow::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses can contain spaces and parentheses; the fields after it are numbers.
    let (_, numbers) = stat.rsplit_once(')').context("/proc/PID/stat")?;
    let ticks = numbers.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
    Ok(Duration::from_secs_f64(ticks.sum::<Result<f64, _>>()? / TICKS_PER_SECOND))
}

fn program_path(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().context("the path of this program has no folder")?.join(name))
}

/// A free port.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
