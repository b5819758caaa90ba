//! The check at startup that the database has all migrations.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{Tasks, database, definition::Definition, health::Health};

/// Interval of the checks while the database is not available.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Fails if the database lacks a migration. While the database is not available, the process is not
/// ready and a task repeats the check.
pub(crate) async fn check_migrations(
    definition: Definition,
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
    if is_migrated(definition, settings).await? {
        complete.store(true, Ordering::Relaxed);
        return Ok(());
    }
    let settings = settings.clone();
    tasks.spawn("migrations", |stop| async move {
        while !complete.load(Ordering::Relaxed) {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
            }
            match is_migrated(definition, &settings).await {
                Ok(migrated) => complete.store(migrated, Ordering::Relaxed),
                // A task that ends early ends the process.
                Err(error) => return tracing::error!("{error:#}"),
            }
        }
        stop.cancelled().await;
    });
    Ok(())
}

/// Whether all migrations were applied; false while the database is not available. A missing migration
/// is an error.
async fn is_migrated(
    definition: Definition,
    settings: &database::Settings,
) -> anyhow::Result<bool> {
    match database::pending(definition.name, settings, (definition.migrations)()).await {
        Ok(missing) => anyhow::ensure!(
            missing.is_empty(),
            "the database lacks {}: run `{} migrate` first",
            missing.join(", "),
            definition.name
        ),
        Err(error) => {
            tracing::warn!(error = format!("{error:#}"), "the database is not available yet");
            return Ok(false);
        }
    }
    Ok(true)
}
