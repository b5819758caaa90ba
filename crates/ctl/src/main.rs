//! Entry point of the `backhaul` command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    ctl::main()
}
