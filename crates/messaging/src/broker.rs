//! The connections of one process to its broker.

use platform::{Process, chain};

use crate::{
    connection::BrokerConnection,
    outbox::{Outbox, Relay, report_age},
    publisher::Publisher,
    restore_check::{self, RestoreCheck},
    settings::Settings,
    topology::Topology,
};

/// Connections, topology and settings. RabbitMQ may block a connection that publishes, so consumers
/// have their own.
#[derive(Clone)]
pub struct Broker {
    pub publishing: BrokerConnection,
    pub consuming: BrokerConnection,
    pub topology: Topology,
    pub settings: Settings,
    pub(crate) restore_check: RestoreCheck,
}

impl Broker {
    /// Connects in the background and reconnects until the process stops. Both connections are
    /// part of the readiness report. Checks whether the database was restored; consumers wait for
    /// that.
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
        let restore_check = restore_check::start_check(process);
        Self { publishing, consuming, topology, settings, restore_check }
    }

    /// Starts the outbox relay of this service.
    pub fn start_relay(&self, service: &'static str, process: &Process) -> Outbox {
        let outbox = Outbox::new(service);
        let relay = Relay::new(
            &outbox,
            process.pool.clone(),
            Publisher::new(self.publishing.clone()),
            self.topology.events_exchange(),
            &self.settings,
        );
        let poll_interval = self.settings.relay_poll_interval;
        process.tasks.spawn("relay", move |stop| relay.run(poll_interval, stop));
        report_age(process);
        outbox
    }
}
