//! The returns portal.

use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<portal::App>()
}
