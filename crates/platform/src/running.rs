//! A running service: its server, its tasks and its shutdown.
//!
//! Shutdown: readiness turns false, the server stops accepting connections and finishes its requests,
//! then the tasks stop.

use std::{sync::Arc, time::Duration};

use actix_web::dev::ServerHandle;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    Clock, Process, Service, Tasks, chain,
    database::{self, Pool},
    definition::{Definition, Start, Started, start},
    health::Health,
    http,
    identity::Verifier,
    limits::PerAddress,
    migration_check::check_migrations,
    openapi,
    settings::Settings,
};

/// Time from the signal to the exit. Requests in flight may take 15 seconds; tasks get the rest.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(24);

/// A service that runs.
pub struct Running {
    pub url: String,
    tasks: Tasks,
    health: Health,
    server: ServerHandle,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Running {
    /// Starts the service `S` in this process.
    pub async fn start<S: Service>(
        settings: Settings,
        own: S::Settings,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        Self::launch(Definition::of::<S>(), settings, start::<S>(own), clock).await
    }

    pub(crate) async fn launch(
        definition: Definition,
        settings: Settings,
        start: Start,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let tasks = Tasks::default();
        let health = Health::started(clock.now());
        let pool = open_database(definition, &settings.database, &tasks, &health).await?;
        let process = Process { pool, tasks, clock, health, http: settings.http };
        let Started { share, verifier } = start(&process)?;
        let Process { tasks, clock, health, http, .. } = process;
        add_token_checks(&verifier, &health);
        let limits = Arc::new(PerAddress::new(settings.limits, clock));
        let routes = http::Routes {
            service: definition.name,
            document: openapi::document(definition),
            configure: definition.routes,
            share,
        };
        let state = http::ServerState { limits, verifier, health: health.clone() };
        let bound = http::bind(&http, routes, state, &tasks)?;
        let url = format!("{}://{}", bound.scheme, bound.address);
        let server = bound.server.handle();
        #[expect(
            clippy::disallowed_methods,
            reason = "the server is owned by `Running` and joined in `stop`"
        )]
        let serving = tokio::spawn(bound.server);
        Ok(Self { url, tasks, health, server, serving })
    }

    /// Resolves when a part of the service failed and the service cannot continue.
    pub async fn failed(&mut self) {
        tokio::select! {
            () = self.tasks.failed() => {}
            _ = &mut self.serving => {}
        }
    }

    /// Finishes requests and tasks in flight. Returns whether all ended in time.
    pub async fn stop(self) -> bool {
        let end = Instant::now() + SHUTDOWN_GRACE;
        self.health.drain();
        self.server.stop(true).await;
        self.tasks.drain(end.saturating_duration_since(Instant::now())).await
    }
}

/// Creates the pool. A service with `database.url` is ready only while its database is available.
async fn open_database(
    definition: Definition,
    settings: &database::Settings,
    tasks: &Tasks,
    health: &Health,
) -> anyhow::Result<Pool> {
    let pool = Pool::new(definition.name, settings)?;
    definition.check_database_url(settings)?;
    if settings.url.is_none() {
        return Ok(pool);
    }
    check_migrations(definition, settings, tasks, health).await?;
    pool.record_metrics(tasks);
    let pinged = pool.clone();
    health.add("database", move || {
        let pool = pinged.clone();
        async move { pool.ping().await.map_err(|error| chain(&error)) }
    });
    Ok(pool)
}

/// Readiness requires the keys of tokens and the complete list of revocations.
fn add_token_checks(verifier: &Arc<Verifier>, health: &Health) {
    let keys = verifier.clone();
    health.add("keys", move || {
        let known = keys.has_keys();
        async move { known.then_some(()).ok_or_else(|| "no signing keys yet".to_owned()) }
    });
    let revocations = verifier.clone();
    health.add("revocations", move || {
        let known = revocations.revocations().are_loaded();
        async move { known.then_some(()).ok_or_else(|| "not loaded yet".to_owned()) }
    });
}
