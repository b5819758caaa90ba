//! The command line of a service.

use std::{collections::HashMap, ffi::OsString, path::PathBuf, process::ExitCode};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    Clock, Running, Service, database,
    definition::{Definition, Start},
    health, openapi,
    settings::{self, Settings},
    telemetry::Telemetry,
    version::version_text,
};

/// mimalloc is faster than the allocator of the system for the many small allocations of a request.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(version = version_text(), arg_required_else_help = true)]
struct Cli {
    /// A TOML file with settings; the environment overrides it.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service until SIGTERM or Ctrl-C
    Serve,
    /// Apply the migrations to the database, then exit
    Migrate,
    /// Print the OpenAPI document as YAML
    Openapi,
    /// Print the embedded settings with their comments
    Defaults,
    /// Read and check the settings as `serve` does, then exit
    Check,
    /// Check that the service on this machine is alive
    Health,
}

/// The whole `main` of a service.
pub fn run<S: Service>() -> ExitCode {
    run_command(Definition::of::<S>())
}

fn run_command(definition: Definition) -> ExitCode {
    let matches = Cli::command().name(definition.name).about(definition.about).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    disable_huge_pages();
    // For libraries that use the TLS provider of the process. It may be installed already.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(execute(definition, cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}

#[expect(clippy::print_stdout, reason = "these commands print their result")]
async fn execute(definition: Definition, cli: Cli) -> anyhow::Result<()> {
    let name = definition.name;
    match cli.command {
        Command::Openapi => print!("{}", openapi::document(definition).to_yaml()?),
        Command::Defaults => println!("{}", settings::default_text(definition.defaults)),
        Command::Check => {
            definition.check_settings(cli.config.as_deref(), environment())?;
            println!("{name}: the settings are good");
        }
        Command::Health => {
            let file = cli.config.as_deref();
            let http = settings::load_http(name, definition.defaults, file, environment())?;
            health::alive(&http.host, http.port, http.tls.is_some()).await?;
        }
        Command::Migrate => {
            let (settings, _) = load(definition, cli.config)?;
            let migrations = (definition.migrations)();
            let applied = database::migrate(name, &settings.database, migrations).await?;
            println!("{name}: migrations that ran: {}", applied.len());
        }
        Command::Serve => {
            let (settings, start) = load(definition, cli.config)?;
            let telemetry = Telemetry::start(name, &settings.telemetry)?;
            raise_open_files_limit();
            let served = serve(definition, settings, start).await;
            if let Err(error) = &served {
                tracing::error!(error = format!("{error:#}"), "{name} cannot continue");
            }
            telemetry.finish();
            served?;
        }
    }
    Ok(())
}

fn load(definition: Definition, file: Option<PathBuf>) -> anyhow::Result<(Settings, Start)> {
    Ok(definition.load_settings(file.as_deref(), environment())?)
}

/// Disables transparent huge pages for this process. mimalloc requests them for its arenas, and an idle service
/// then holds several times the memory that it uses.
fn disable_huge_pages() {
    // A kernel without the call has no huge pages to disable.
    #[cfg(target_os = "linux")]
    rustix::thread::disable_transparent_huge_pages(true).ok();
}

/// The environment variables. Invalid UTF-8 is replaced, and then rejected by the parser of the setting.
fn environment() -> HashMap<String, String> {
    let text = |part: OsString| part.to_string_lossy().into_owned();
    std::env::vars_os().map(|(name, value)| (text(name), text(value))).collect()
}

/// Raises the limit of open files to its maximum: a service may have thousands of connections.
fn raise_open_files_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(files, "the limit of open files is {files}"),
        Err(error) => tracing::debug!(%error, "the limit of open files was not raised"),
    }
}

async fn serve(definition: Definition, settings: Settings, start: Start) -> anyhow::Result<()> {
    let name = definition.name;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut running = Running::launch(definition, settings, start, Clock::system()).await?;
    tracing::info!(url = running.url, "{name} listens on {}", running.url);
    let is_healthy = tokio::select! {
        _ = terminate.recv() => true,
        _ = interrupt.recv() => true,
        () = running.failed() => false,
    };
    tracing::info!("{name} is shutting down");
    let all_stopped = running.stop().await;
    anyhow::ensure!(is_healthy, "a part of the service failed");
    anyhow::ensure!(all_stopped, "some tasks did not stop in time");
    tracing::info!("{name} has shut down");
    Ok(())
}
