//! A service from its command line to its last breath.
//!
//! On SIGTERM or Ctrl-C: readiness turns false, the server stops accepting and finishes what it
//! has, then the tasks drain, all within 25 seconds.

use std::{
    ffi::OsString,
    future::Future,
    path::PathBuf,
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use actix_web::{dev::ServerHandle, web};
use anyhow::Context as _;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use diesel_migrations::EmbeddedMigrations;
use serde::de::DeserializeOwned;
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::Instant,
};
use utoipa_actix_web::service_config::ServiceConfig;

use crate::{
    Clock, Tasks,
    config::{self, Settings},
    database::{self, Pool},
    health::{self, Health},
    http,
    identity::Verifier,
    limits::PerAddress,
    openapi,
    telemetry::Telemetry,
};

/// Requests and messages are many small, short-lived pieces, and this is much better at them than
/// the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Time from the signal to the exit. Requests in flight may take 15 seconds; tasks get the rest.
const GRACE: Duration = Duration::from_secs(24);

/// How often a database that is away at the start is asked what has run.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// The definition of a service. The implementing type is the state of the service, which handlers
/// receive as `web::Data<Self>`.
pub trait Service: Send + Sync + Sized + 'static {
    /// Its name: of the binary, in logs, and (upper case) before its settings in the environment.
    const NAME: &'static str;
    /// One line for `--help` and for the API document.
    const ABOUT: &'static str;
    /// Embedded settings, later ones winning.
    const DEFAULTS: &'static [&'static str];
    /// The sections of its own, beside the platform's.
    type Settings: DeserializeOwned + Send;

    /// Its tables, in the order in which they must be made.
    fn migrations() -> Vec<EmbeddedMigrations>;
    /// The URL table.
    fn routes(config: &mut ServiceConfig<'_>);
    /// State for handlers that come from a shared crate and do not know `Self`.
    fn share(&self, app: &mut web::ServiceConfig) {
        // Most services have none.
        let _ = app;
    }
    /// Starts its tasks. Must not need the database or the broker to be there yet.
    fn start(
        process: &Process,
        settings: Self::Settings,
    ) -> impl Future<Output = anyhow::Result<(Self, Arc<Verifier>)>> + Send;
}

/// Resources that the platform gives to a service at startup.
pub struct Process {
    pub pool: Pool,
    pub tasks: Tasks,
    pub clock: Clock,
    pub health: Health,
    pub http: http::Settings,
}

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
        let (tasks, health) = (Tasks::default(), Health::default());
        check_migrations::<S>(&settings.database, &tasks, &health).await?;
        let pool = Pool::new(S::NAME, &settings.database)?;
        pool.watch(&tasks);
        let ping = pool.clone();
        health.add("database", move || {
            let pool = ping.clone();
            async move { pool.ping().await.map_err(|error| crate::failure::chain(&error)) }
        });
        let process = Process { pool, tasks, clock, health, http: settings.http };
        let (service, verifier) = S::start(&process, own).await?;
        let Process { tasks, clock, health, http, .. } = process;
        let keys = verifier.clone();
        health.add("keys", move || {
            let known = keys.has_keys();
            async move { known.then_some(()).ok_or_else(|| "no signing keys yet".to_owned()) }
        });
        let revocations = verifier.clone();
        health.add("revocations", move || {
            let known = revocations.revocations().are_known();
            async move { known.then_some(()).ok_or_else(|| "not read yet".to_owned()) }
        });
        let door = Arc::new(PerAddress::new(settings.limits, clock));
        let bound = http::bind(&http, door, Arc::new(service), verifier, health.clone(), &tasks)?;
        let url = format!("{}://{}", bound.scheme, bound.address);
        let server = bound.server.handle();
        #[expect(
            clippy::disallowed_methods,
            reason = "the server is owned by `Running` and joined in `stop`"
        )]
        let serving = tokio::spawn(bound.server);
        Ok(Self { url, tasks, health, server, serving })
    }

    /// Resolves when a part of the service failed and it cannot go on.
    pub async fn failed(&mut self) {
        tokio::select! {
            () = self.tasks.failed() => {}
            _ = &mut self.serving => {}
        }
    }

    /// Finishes requests and tasks in flight. Returns whether all ended in time.
    pub async fn stop(self) -> bool {
        let end = Instant::now() + GRACE;
        self.health.drain();
        self.server.stop(true).await;
        self.tasks.drain(end.saturating_duration_since(Instant::now())).await
    }
}

#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    /// A TOML file with settings; the environment still wins.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service until SIGTERM or Ctrl-C
    Serve,
    /// Bring the database up to date, then leave
    Migrate,
    /// Print the OpenAPI document as YAML
    Openapi,
    /// Print the embedded settings with their comments
    Defaults,
    /// Read and judge the settings as `serve` would, then leave
    Check,
    /// Ask the service that runs beside this whether it lives
    Health,
}

/// The whole `main` of a service.
pub fn run<S: Service>() -> ExitCode {
    let matches = Cli::command().name(S::NAME).about(S::ABOUT).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // For the libraries that take TLS from the process; a second call finds the same provider.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&error.into()),
    };
    match runtime.block_on(execute::<S>(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error),
    }
}

fn complain(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

#[expect(clippy::print_stdout, reason = "this is what these commands are for")]
async fn execute<S: Service>(cli: Cli) -> anyhow::Result<()> {
    match cli.command {
        Command::Openapi => print!("{}", openapi::<S>().to_yaml()?),
        Command::Defaults => {
            println!("{}", include_str!("../default.toml"));
            S::DEFAULTS.iter().for_each(|text| println!("{text}"));
        }
        Command::Check => {
            let (settings, _) = load::<S>(cli.config)?;
            http::check(&settings.http).context("settings")?;
            println!("{}: the settings are good", S::NAME);
        }
        Command::Health => {
            let file = cli.config.as_deref();
            let http = config::load_http(S::NAME, S::DEFAULTS, file, environment());
            health::ask(&http.context("settings")?).await?;
        }
        Command::Migrate => {
            let (settings, _) = load::<S>(cli.config)?;
            let ran = database::migrate(S::NAME, &settings.database, S::migrations()).await?;
            println!("{}: {} migrations ran", S::NAME, ran.len());
        }
        Command::Serve => {
            let (settings, own) = load::<S>(cli.config)?;
            let telemetry = Telemetry::start(S::NAME, &settings.telemetry)?;
            allow_open_files();
            let served = serve::<S>(settings, own).await;
            if let Err(error) = &served {
                tracing::error!(error = format!("{error:#}"), "{} cannot go on", S::NAME);
            }
            telemetry.finish();
            served?;
        }
    }
    Ok(())
}

fn load<S: Service>(file: Option<PathBuf>) -> anyhow::Result<(Settings, S::Settings)> {
    config::load(S::NAME, S::DEFAULTS, file.as_deref(), environment()).context("settings")
}

/// The environment variables. Invalid UTF-8 is replaced, and then rejected by the parser of the setting.
fn environment() -> std::collections::HashMap<String, String> {
    let text = |part: OsString| part.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// A connection is a file, and a service may have thousands: raises what it may open to what the system
/// lets it.
fn allow_open_files() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "may open {files} files"),
        Err(error) => tracing::debug!(%error, "the limit of open files stays as it was"),
    }
}

/// Refuses a database that lacks a migration. One that is away is asked until it answers; until then
/// the process is not ready.
async fn check_migrations<S: Service>(
    settings: &database::Settings,
    tasks: &Tasks,
    health: &Health,
) -> anyhow::Result<()> {
    let complete = Arc::new(AtomicBool::new(false));
    let known = complete.clone();
    health.add("migrations", move || {
        let known = known.load(Ordering::Relaxed);
        async move { known.then_some(()).ok_or_else(|| "not known yet".to_owned()) }
    });
    if is_migrated::<S>(settings).await? {
        complete.store(true, Ordering::Relaxed);
        return Ok(());
    }
    let settings = settings.clone();
    tasks.spawn("migrations", |stop| async move {
        while !complete.load(Ordering::Relaxed) {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(ASK_AGAIN) => {}
            }
            match is_migrated::<S>(&settings).await {
                Ok(migrated) => complete.store(migrated, Ordering::Relaxed),
                // The end of this task is the end of the process.
                Err(error) => return tracing::error!("{error:#}"),
            }
        }
        stop.cancelled().await;
    });
    Ok(())
}

/// Whether every migration has run; not, too, while nobody can tell. One that has not is an error.
async fn is_migrated<S: Service>(settings: &database::Settings) -> anyhow::Result<bool> {
    match database::pending(S::NAME, settings, S::migrations()).await {
        Ok(missing) => anyhow::ensure!(
            missing.is_empty(),
            "the database lacks {}: run `{} migrate` first",
            missing.join(", "),
            S::NAME
        ),
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "the database is not there yet");
            return Ok(false);
        }
    }
    Ok(true)
}

async fn serve<S: Service>(settings: Settings, own: S::Settings) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut running = Running::start::<S>(settings, own, Clock::system()).await?;
    tracing::info!(url = running.url, "{} listens on {}", S::NAME, running.url);
    let healthy = tokio::select! {
        _ = terminate.recv() => true,
        _ = interrupt.recv() => true,
        () = running.failed() => false,
    };
    tracing::info!("{} is leaving", S::NAME);
    let complete = running.stop().await;
    anyhow::ensure!(healthy, "a part of the service failed");
    anyhow::ensure!(complete, "some tasks did not stop in time");
    tracing::info!("{} left cleanly", S::NAME);
    Ok(())
}
