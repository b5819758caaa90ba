use std::process::ExitCode;

fn main() -> ExitCode {
    platform::run::<auth::App>()
}
