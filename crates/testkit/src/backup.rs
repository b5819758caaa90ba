//! Backups of a test's database, made and restored as the runbook says.

use std::path::PathBuf;
use std::process::Command;

use uuid::Uuid;

use crate::Database;
use crate::connection::execute;

/// A file that `pg_dump` wrote. Dropping the value deletes the file.
pub struct Backup(PathBuf);

impl Database {
    /// Dumps the database.
    pub fn back_up(&self) -> Backup {
        let name = format!("backhaul-{}.dump", Uuid::new_v4().simple());
        let backup = Backup(std::env::temp_dir().join(name));
        let url = self.url();
        run(program("pg_dump").args(["-Fc", "-d", &url, "-f"]).arg(&backup.0));
        backup
    }

    /// Restores a backup into a new database of the same server.
    pub async fn restore(&self, backup: &Backup) -> Self {
        let restored = self.unused_database();
        execute(restored.server(), &format!("CREATE DATABASE {}", restored.name())).await.unwrap();
        let url = restored.url();
        tokio::task::block_in_place(|| {
            run(program("pg_restore").args(["--exit-on-error", "-d", &url]).arg(&backup.0));
        });
        restored
    }

    /// Copies the files of the database into a new database. Connections to it are closed.
    pub async fn copy(&self) -> Self {
        let copy = self.unused_database();
        let disconnect = format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'",
            self.name()
        );
        execute(copy.server(), &disconnect).await.unwrap();
        let statement = format!("CREATE DATABASE {} TEMPLATE {}", copy.name(), self.name());
        execute(copy.server(), &statement).await.unwrap();
        copy
    }
}

impl Drop for Backup {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            eprintln!("{} was not removed: {error}", self.0.display());
        }
    }
}

/// A program of the newest PostgreSQL, as `scripts/servers` chooses it.
fn program(name: &str) -> Command {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = installed
        .filter_map(|version| version.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .max();
    match newest {
        Some(version) => Command::new(format!("/usr/lib/postgresql/{version}/bin/{name}")),
        None => Command::new(name),
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
}
