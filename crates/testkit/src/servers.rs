//! A PostgreSQL and a RabbitMQ for one test, which can kill and restart them.

use std::{collections::HashMap, path::PathBuf, process::Command};

/// One of the two servers.
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

/// A pair of servers. Dropping it kills them and deletes their data.
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

    /// Shuts a server down gracefully and starts it again. RabbitMQ 3.10 can lose the leadership of a quorum
    /// queue if it is killed within seconds of the queue's declaration. A graceful shutdown persists it, so
    /// tests that kill the server later do this first.
    pub fn restart(&self, server: Server) {
        self.start_server(&["restart", server.name()]);
    }

    /// Kills a server with SIGKILL.
    pub fn kill(&self, server: Server) {
        self.control(&["kill", server.name()]);
    }

    /// Starts a server again, on the same port and with its data.
    pub fn start_again(&self, server: Server) {
        self.start_server(&["start", server.name()]);
    }

    /// Starts a server again without its data.
    pub fn start_empty(&self, server: Server) {
        self.start_server(&["start", server.name(), "--wipe"]);
    }

    /// Raises the broker's memory alarm, so that it blocks publishers.
    pub fn raise_memory_alarm(&self) {
        self.control(&["fill", Server::Rabbitmq.name()]);
    }

    /// Clears the broker's memory alarm.
    pub fn clear_memory_alarm(&self) {
        self.control(&["drain", Server::Rabbitmq.name()]);
    }

    /// Starts a server again, and checks that it has the same address as before.
    fn start_server(&self, arguments: &[&str]) {
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
