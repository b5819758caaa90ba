//! A service in its own process, which a test can kill.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use crate::{Database, Issuer, Namespace, eventually, service::SEALING_KEYS};

const TIMEOUT: Duration = Duration::from_secs(300);

/// The memory limit of [`Replica::start_limited`]: 512 MiB.
pub const MEMORY_LIMIT_KIB: u64 = 512 * 1024;

/// The settings of a delivering service that is killed: short timeouts, and a merchant on this machine.
pub const CRASH_SETTINGS: [(&str, &str); 9] = [
    ("DATABASE__ACQUIRE_TIMEOUT", "5s"),
    ("SEALING__KEYS", SEALING_KEYS),
    ("SHOPPER__PROOF_KEYS", SEALING_KEYS),
    ("DELIVERY__HTTPS_ONLY", "false"),
    ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("DELIVERY__RETRY_BASE", "100ms"),
    ("DELIVERY__RETRY_FACTOR", "1"),
    ("DELIVERY__ATTEMPT_TIMEOUT", "2s"),
    ("DELIVERY__LEASE", "5s"),
];

/// A running process of a service; killed when dropped.
pub struct Replica {
    child: Child,
    pub url: String,
}

impl Replica {
    /// Starts a service from its program and waits until it is ready.
    pub async fn start(
        service: &str,
        program: &str,
        dependencies: (&Database, &Namespace, &Issuer),
        settings: &[(&str, &str)],
    ) -> Self {
        Self::spawn(service, Command::new(program), dependencies, settings).await
    }

    /// Starts a service that cannot allocate more memory than [`MEMORY_LIMIT_KIB`].
    pub async fn start_limited(
        service: &str,
        program: &str,
        dependencies: (&Database, &Namespace, &Issuer),
        settings: &[(&str, &str)],
    ) -> Self {
        let limited = format!("ulimit -d {MEMORY_LIMIT_KIB} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &limited, program]);
        Self::spawn(service, command, dependencies, settings).await
    }

    async fn spawn(
        service: &str,
        command: Command,
        (database, namespace, issuer): (&Database, &Namespace, &Issuer),
        settings: &[(&str, &str)],
    ) -> Self {
        let database = database.url();
        let places = [
            ("DATABASE__URL", database.as_str()),
            ("BROKER__URL", namespace.amqp_url()),
            ("BROKER__NAMESPACE", &namespace.name),
        ];
        let settings: Vec<_> =
            places.iter().chain(settings).copied().chain(issuer.settings()).collect();
        Self::spawn_with(service, command, &settings).await
    }

    /// Starts the console or the portal, which have no database and no broker connection.
    pub async fn start_pages(service: &str, program: &str, settings: &[(&str, &str)]) -> Self {
        Self::spawn_with(service, Command::new(program), settings).await
    }

    async fn spawn_with(service: &str, mut command: Command, settings: &[(&str, &str)]) -> Self {
        let port = free_port().to_string();
        let prefix = service.to_uppercase().replace('-', "_");
        command.env(format!("{prefix}__HTTP__PORT"), &port);
        for (name, value) in settings {
            command.env(format!("{prefix}__{name}"), value);
        }
        let child = command.arg("serve").stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let replica = Self { child: child.unwrap(), url: format!("http://127.0.0.1:{port}") };
        let client = platform::http_client(Duration::from_secs(300)).unwrap();
        let ready = format!("{}/readyz", replica.url);
        eventually("the replica is ready", TIMEOUT, || async {
            client.get(&ready).send().await.ok()?.status().is_success().then_some(())
        })
        .await;
        replica
    }

    /// The peak of the resident memory.
    pub fn peak_memory_kib(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Whether the process may have transparent huge pages.
    pub fn has_huge_pages(&self) -> bool {
        self.status("THP_enabled:") != 0
    }

    fn status(&self, field: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let value = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        value.split_whitespace().next().unwrap().parse().unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A free port below those that the system uses for outgoing connections, so that no connection takes it
/// meanwhile. Each call returns another port, and test programs that run at once search in other ranges.
pub fn free_port() -> u16 {
    static LAST: Mutex<Option<u16>> = Mutex::new(None);
    // The port is tried under the lock: a port that another thread is trying just now does not look taken.
    let mut last = LAST.lock().unwrap();
    let range = u16::try_from(std::process::id() % 160).unwrap();
    let start = last.map_or(22_000 + 64 * range, |port| port + 1);
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let port = (start..).find(free).unwrap();
    *last = Some(port);
    port
}
