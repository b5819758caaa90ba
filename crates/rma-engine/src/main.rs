//! The rma-engine service.

use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<rma_engine::App>()
}
