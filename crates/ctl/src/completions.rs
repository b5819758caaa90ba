//! `backhaul completions`: completions for a shell.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::output::print_own;

/// Print the completions of a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  backhaul completions bash \\
      > ~/.local/share/bash-completion/completions/backhaul
  backhaul completions zsh > ~/.zfunc/_backhaul
  backhaul completions fish > ~/.config/fish/completions/backhaul.fish")]
pub(crate) struct Arguments {
    /// Shell whose completions are printed
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: Command) -> anyhow::Result<()> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(arguments.shell, &mut command, name, &mut script);
    Ok(print_own(&String::from_utf8(script)?)?)
}
