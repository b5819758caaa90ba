//! The web console.

use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<console::App>()
}
