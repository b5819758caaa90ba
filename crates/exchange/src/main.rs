//! The exchange service.

use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<exchange::App>()
}
