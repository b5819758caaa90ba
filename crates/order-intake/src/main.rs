//! The order-intake service.

use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<order_intake::App>()
}
