//! `backhaul man`: manual pages.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::Context as _;
use clap::{Args, Command};

use crate::output::file_name;

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
        .and_then(|()| name_examples(folder))
        .with_context(|| format!("cannot write to {}", file_name(folder)))
}

/// The text after the options has only examples, and clap calls it EXTRA.
fn name_examples(folder: &Path) -> io::Result<()> {
    for page in fs::read_dir(folder)? {
        let path = page?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("backhaul") && name.ends_with(".1") {
            let page = fs::read_to_string(&path)?;
            fs::write(&path, page.replace(".SH EXTRA\n", ".SH EXAMPLES\n"))?;
        }
    }
    Ok(())
}
