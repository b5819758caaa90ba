//! A PostgreSQL and a RabbitMQ of a test's own, to be killed and started again.

use std::{collections::HashMap, path::PathBuf, process::Command};

/// Which of the two.
#[derive(Debug, Clone, Copy)]
pub enum Server {
    Postgres,
    Rabbitmq,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Rabbitmq => "rabbitmq",
        }
    }
}

/// A pair of servers; killed and wiped when dropped.
pub struct Servers {
    dir: PathBuf,
    settings: HashMap<String, String>,
}

impl Servers {
    pub fn start() -> Self {
        let dir = checkout().join(".run").join(format!("test-{}", uuid::Uuid::new_v4().simple()));
        let mut servers = Self { dir, settings: HashMap::new() };
        servers.settings = parse(&servers.control(&["start"]));
        servers
    }

    pub fn postgres_url(&self) -> String {
        self.setting("POSTGRES_URL").to_owned()
    }

    pub fn amqp_url(&self) -> String {
        self.setting("AMQP_URL").to_owned()
    }

    pub fn rabbitmq_api_url(&self) -> String {
        self.setting("RABBITMQ_API_URL").to_owned()
    }

    /// Stops a server in order and starts it again. RabbitMQ 3.10 may forget that it leads a quorum
    /// queue when it is killed within seconds of the queue's declaration; an orderly stop writes
    /// everything down, so tests that kill it later do this first.
    pub fn restart(&self, server: Server) {
        self.bring_back(&["restart", server.name()]);
    }

    /// Ends a server without warning.
    pub fn kill(&self, server: Server) {
        self.control(&["kill", server.name()]);
    }

    /// Starts a server again, on the same port and with its data.
    pub fn start_again(&self, server: Server) {
        self.bring_back(&["start", server.name()]);
    }

    /// Starts a server again with nothing in it.
    pub fn start_empty(&self, server: Server) {
        self.bring_back(&["start", server.name(), "--wipe"]);
    }

    /// Lets the broker believe that its memory is full.
    pub fn fill(&self) {
        self.control(&["fill", Server::Rabbitmq.name()]);
    }

    /// Lets it find that there is room again.
    pub fn drain(&self) {
        self.control(&["drain", Server::Rabbitmq.name()]);
    }

    /// Checks that a restarted server has the same address as before.
    fn bring_back(&self, arguments: &[&str]) {
        for (name, value) in parse(&self.control(arguments)) {
            assert_eq!(value, self.setting(&name), "{name} has changed: {arguments:?}");
        }
    }

    fn setting(&self, name: &str) -> &str {
        let value = self.settings.get(name);
        value.unwrap_or_else(|| panic!("scripts/servers did not print {name}"))
    }

    fn control(&self, arguments: &[&str]) -> String {
        let script = checkout().join("scripts/servers");
        let output =
            Command::new(script).args(arguments).arg("--dir").arg(&self.dir).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "scripts/servers {arguments:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.control(&["kill"]);
        self.control(&["stop", "--wipe"]);
        if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            eprintln!("{} was not removed: {error}", self.dir.display());
        }
    }
}

/// The NAME=VALUE lines that `scripts/servers` prints.
pub(crate) fn parse(printed: &str) -> HashMap<String, String> {
    let plain =
        |(name, value): (&str, &str)| (name.to_owned(), value.trim_matches(['\'', '"']).to_owned());
    printed.lines().filter_map(|line| line.split_once('=')).map(plain).collect()
}

pub(crate) fn checkout() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
