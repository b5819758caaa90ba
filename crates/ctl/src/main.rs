//! `backhaul`, the command line for merchants' engineers and operators.

use std::process::ExitCode;

fn main() -> ExitCode {
    ctl::main()
}
