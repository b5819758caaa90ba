//! Child processes, with their CPU time and memory.

use std::{fs, path::PathBuf, process::Stdio, time::Duration};

use anyhow::Context as _;
use platform::Service;
use testkit::{Database, Namespace};
use tokio::process::{Child, Command};

use crate::proc_stat::cpu_of;

/// Time for a process to become ready, also with 100,000 merchants.
const START_TIMEOUT: Duration = Duration::from_secs(120);

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
        testkit::eventually(&format!("{name} is ready"), START_TIMEOUT, async || {
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

    /// Starts a service. `identity` names the issuer of tokens; `settings` are further settings, without the
    /// prefix of the service.
    pub(crate) async fn start_service<S: Service>(
        database: &Database,
        namespace: &Namespace,
        identity: &[(&str, &str)],
        settings: &[(&str, &str)],
    ) -> anyhow::Result<Self> {
        let (port, database_url) = (free_port()?, database.url());
        let port_text = port.to_string();
        let common = [
            ("HTTP__PORT", port_text.as_str()),
            ("LIMITS__REQUESTS_PER_MINUTE", "100000000"),
            ("DATABASE__URL", &database_url),
            ("BROKER__URL", namespace.amqp_url()),
            ("BROKER__NAMESPACE", &namespace.name),
        ];
        let prefix = S::NAME.replace('-', "_").to_uppercase();
        let named: Vec<_> = common
            .iter()
            .chain(identity)
            .chain(settings)
            .map(|(name, value)| (format!("{prefix}__{name}"), *value))
            .collect();
        let environment: Vec<_> =
            named.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        Self::start(S::NAME, &["serve"], &environment, port, "/readyz").await
    }

    /// Kills the process and waits until it is gone.
    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Host and port.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
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

/// A value that `scripts/bench` sets.
pub(crate) fn test_setting(name: &str) -> anyhow::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "scripts/bench has no other way to pass it")]
    std::env::var(name).with_context(|| format!("{name} is not set: use scripts/bench"))
}

/// The path of a program in the folder of this one.
pub(crate) fn program_path(name: &str) -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    Ok(own.parent().context("the path of this program has no folder")?.join(name))
}

/// A free port.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
