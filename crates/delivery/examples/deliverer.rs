//! Runs the service of the integration tests as a process, so that they can kill it.

#![expect(clippy::unwrap_used, reason = "a test program should panic when it cannot start")]

#[path = "../tests/delivery/test_app/deliverer.rs"]
mod deliverer;

use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<deliverer::Deliverer>()
}
