//! The connections of one process to its broker.

use std::{
    num::{NonZeroU16, NonZeroUsize},
    time::Duration,
};

use platform::{Process, chain};
use secrecy::SecretString;
use serde::Deserialize;

use crate::{
    connection::{self, BrokerConnection},
    outbox::{Outbox, Relay, report_age},
    publisher::Publisher,
    topology::Topology,
};

/// `[broker]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `amqp://` or `amqps://`, with user, password and virtual host.
    #[serde(deserialize_with = "connection::deserialize_url")]
    pub url: SecretString,
    pub namespace: String,
    pub prefetch: NonZeroU16,
    pub batch_size: NonZeroUsize,
    pub relay_batch_size: NonZeroUsize,
    #[serde(with = "humantime_serde")]
    pub relay_poll_interval: Duration,
    #[serde(with = "humantime_serde")]
    pub inbox_retention: Duration,
}

/// Connections, topology and settings. RabbitMQ may block a connection that publishes, so consumers
/// have their own.
#[derive(Clone)]
pub struct Broker {
    pub publishing: BrokerConnection,
    pub consuming: BrokerConnection,
    pub topology: Topology,
    pub settings: Settings,
}

impl Broker {
    /// Connects in the background and reconnects until the process stops. Both connections are
    /// part of the readiness report.
    pub fn start(
        service: &'static str,
        process: &Process,
        settings: Settings,
        topology: Topology,
    ) -> Self {
        let connect = |role: &str, part| {
            let name = format!("{service} {role}");
            let connection =
                BrokerConnection::start(&settings.url, &topology, &name, &process.tasks);
            let checked = connection.clone();
            process.health.add(part, move || {
                let state = checked.state();
                async move { state.map_err(|error| chain(&error)) }
            });
            connection
        };
        let publishing = connect("publishing", "broker.publishing");
        let consuming = connect("consuming", "broker.consuming");
        Self { publishing, consuming, topology, settings }
    }

    /// Starts the outbox relay of this service.
    pub fn start_relay(&self, service: &'static str, process: &Process) -> Outbox {
        let outbox = Outbox::new(service);
        let relay = Relay::new(
            &outbox,
            process.pool.clone(),
            Publisher::new(self.publishing.clone()),
            self.topology.events_exchange(),
            self.settings.relay_batch_size.get(),
        );
        let poll_interval = self.settings.relay_poll_interval;
        process.tasks.spawn("relay", move |stop| relay.run(poll_interval, stop));
        report_age(process);
        outbox
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use platform::config;

    use super::*;
    use crate::DEFAULTS;

    #[test]
    fn unusable_settings_are_rejected() {
        let read = |name: &str, value: &str| {
            let mut given = HashMap::from(
                [("DATABASE__URL", "postgres://h"), ("BROKER__URL", "amqp://h")]
                    .map(|(name, value)| (format!("TEST__{name}"), value.to_owned())),
            );
            given.insert(format!("TEST__BROKER__{name}"), value.to_owned());
            config::load::<HashMap<String, Settings>>("test", &[DEFAULTS], None, given)
        };
        assert!(read("RELAY_BATCH_SIZE", "1").is_ok());
        assert!(read("URL", "amqps://user:secret@host:5671/%2f").is_ok());
        for (name, value) in [
            ("RELAY_BATCH_SIZE", "0"),
            ("BATCH_SIZE", "0"),
            ("PREFETCH", "0"),
            ("URL", "rabbitmq:5672"),
            ("URL", "http://user:secret@host"),
        ] {
            let rejected = read(name, value).unwrap_err().to_string();
            assert!(rejected.contains(&format!("broker.{}", name.to_lowercase())), "{rejected}");
            assert!(!rejected.contains("secret"), "{rejected}");
        }
    }
}
