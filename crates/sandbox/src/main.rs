//! The sandbox merchant as a process.

use clap::{Parser, ValueEnum};
use sandbox::settings::Settings;

/// A merchant to test against: every endpoint a merchant operates, able to fail on purpose.
///
/// Settings come from the environment; these are all of them, with their defaults:
///
///   SANDBOX__HTTP__HOST=127.0.0.1       where to listen
///   SANDBOX__HTTP__PORT=8090            0 takes any free port
///   SANDBOX__HTTP__WORKERS=1            threads that answer
///   SANDBOX__JOURNAL__ENABLED=true      false: requests are only counted
///   SANDBOX__JOURNAL__CAPACITY=10000    requests kept
///   SANDBOX__SIGNING__SECRETS=          whsec_ secrets, separated by commas
///   SANDBOX__SIGNING__REQUIRED=false    true: a signature that does not fit gets 400
///   SANDBOX__TOKENS__LIFETIME=3600      seconds a token says it is valid
///
/// GET / of the running sandbox says what it can do.
#[derive(Parser)]
#[command(version, verbatim_doc_comment)]
struct Arguments {
    #[arg(value_enum, default_value = "serve")]
    verb: Verb,
}

#[derive(Clone, Copy, ValueEnum)]
enum Verb {
    /// Be a merchant
    Serve,
    /// Ask the sandbox that runs beside this whether it lives
    Health,
}

fn main() -> anyhow::Result<()> {
    let settings = Settings::from_environment()?;
    match Arguments::parse().verb {
        Verb::Serve => sandbox::serve(&settings),
        Verb::Health => sandbox::ask(&settings),
    }
}
