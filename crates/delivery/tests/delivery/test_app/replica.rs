//! Replicas of the service: in the process of the test, or in a process of their own.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};

use delivery::Deliveries;
use platform::{Process, Service as _, settings};
use testkit::{Database, Namespace, eventually};

use super::TIMEOUT;
use super::deliverer::{Deliverer, Settings};

type Environment = HashMap<String, String>;

/// Settings that all replicas share.
pub(super) const DELIVERY_SETTINGS: [(&str, &str); 5] = [
    ("DELIVERY__HTTPS_ONLY", "false"),
    ("DELIVERY__ALLOWED_NETWORKS", "127.0.0.1/32"),
    ("DELIVERY__RETRY_BASE", "50ms"),
    ("DELIVERY__RETRY_FACTOR", "1"),
    ("DELIVERY__POLL_INTERVAL", "20ms"),
];

fn environment(
    database: &Database,
    namespace: &Namespace,
    settings: &[(&str, &str)],
) -> Environment {
    let database_url = database.url();
    let connections = [
        ("DATABASE__URL", database_url.as_str()),
        ("BROKER__URL", namespace.amqp_url()),
        ("BROKER__NAMESPACE", &namespace.name),
        ("BROKER__RELAY_POLL_INTERVAL", "50ms"),
    ];
    connections
        .iter()
        .chain(&DELIVERY_SETTINGS)
        .chain(settings)
        .map(|(key, value)| (format!("DELIVERER__{key}"), (*value).to_owned()))
        .collect()
}

/// A replica in the process of the test.
pub(crate) struct Replica {
    pub(crate) process: Process,
    pub(crate) deliveries: Deliveries,
}

impl Replica {
    /// Starts a replica, ready or not.
    pub(crate) fn launch(
        database: &Database,
        namespace: &Namespace,
        settings: &[(&str, &str)],
    ) -> Self {
        let environment = environment(database, namespace, settings);
        let (_, settings) =
            settings::load::<Settings>(Deliverer::NAME, Deliverer::DEFAULTS, None, environment)
                .unwrap();
        let process = testkit::process(database);
        let (Deliverer(deliveries), _) = Deliverer::start(&process, settings).unwrap();
        Self { process, deliveries }
    }

    pub(crate) async fn start(
        database: &Database,
        namespace: &Namespace,
        settings: &[(&str, &str)],
    ) -> Self {
        let replica = Self::launch(database, namespace, settings);
        replica.ready().await;
        replica
    }

    pub(crate) async fn ready(&self) {
        eventually("the replica is ready", TIMEOUT, async || {
            self.process.health.report().await.ready.then_some(())
        })
        .await;
    }

    pub(crate) async fn stop(self) {
        assert!(self.process.tasks.drain(TIMEOUT).await, "tasks did not stop");
    }
}

/// A replica in a process of its own, which can be killed.
pub(crate) struct ReplicaProcess(Child);

impl ReplicaProcess {
    /// Starts the example `deliverer`, which Cargo builds beside the tests.
    pub(super) fn start(
        database: &Database,
        namespace: &Namespace,
        settings: &[(&str, &str)],
    ) -> Self {
        let test_program = std::env::current_exe().unwrap();
        let build_dir = test_program.parent().unwrap().parent().unwrap();
        let mut command = Command::new(build_dir.join("examples/deliverer"));
        command.arg("serve").stdout(Stdio::null()).stderr(Stdio::null());
        command.env("DELIVERER__HTTP__PORT", "0");
        Self(command.envs(environment(database, namespace, settings)).spawn().unwrap())
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
