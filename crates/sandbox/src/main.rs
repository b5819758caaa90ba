//! Entry point of the sandbox merchant.

use clap::{Parser, ValueEnum};
use sandbox::settings::Settings;

/// A merchant for tests, with all endpoints and failures on demand.
///
/// Settings are environment variables. All of them, with their defaults:
///
///   SANDBOX__HTTP__HOST=127.0.0.1       address to listen on
///   SANDBOX__HTTP__PORT=8090            0 chooses a free port
///   SANDBOX__HTTP__WORKERS=1            number of threads
///   SANDBOX__HTTP__PUBLIC_URL=          URL of pictures; empty: the URL of the request
///   SANDBOX__JOURNAL__ENABLED=true      false: requests are counted but not stored
///   SANDBOX__JOURNAL__CAPACITY=10000    number of stored requests
///   SANDBOX__SIGNING__SECRETS=          whsec_ secrets, separated by commas
///   SANDBOX__SIGNING__REQUIRED=false    true: a message without a valid signature gets 400
///   SANDBOX__TOKENS__LIFETIME=3600      lifetime of tokens in seconds
///   SANDBOX__MAIL__ENABLED=false        true: an SMTP server accepts mails, and /mails shows them
///   SANDBOX__MAIL__PORT=8025            its port; 0 chooses a free port
///   SANDBOX__MAIL__CAPACITY=500         number of stored mails
///
/// GET / of a running sandbox lists its endpoints and steps.
#[derive(Parser)]
#[command(version, verbatim_doc_comment)]
struct Arguments {
    #[arg(value_enum, default_value = "serve")]
    command: Command,
}

#[derive(Clone, Copy, ValueEnum)]
enum Command {
    /// Run the sandbox
    Serve,
    /// Check the health of a running sandbox with the same settings
    Health,
}

fn main() -> anyhow::Result<()> {
    let settings = Settings::from_environment()?;
    match Arguments::parse().command {
        Command::Serve => sandbox::serve(&settings),
        Command::Health => sandbox::check_health(&settings),
    }
}
