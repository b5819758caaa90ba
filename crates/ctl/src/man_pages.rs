//! `backhaul man`: manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};

/// Write a manual page for every command
#[derive(Args)]
#[command(after_help = "\
Example:
  backhaul man ~/.local/share/man/man1")]
pub(crate) struct Arguments {
    /// Folder of the pages; it is created if it does not exist
    folder: PathBuf,
}

pub(crate) fn run(Arguments { folder }: &Arguments, command: Command) -> anyhow::Result<()> {
    fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .with_context(|| format!("cannot write to {}", folder.display()))
}
