//! The warehouse-notifier service.

use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<warehouse_notifier::App>()
}
