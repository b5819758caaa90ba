//! `backhaul verify`: checks the signature of a captured message.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use platform::signing::{Secret, SignedHeaders, verify};
use platform::{Clock, Timestamp};
use serde_json::json;

use crate::output::{Format, file_name};
use crate::settings::read_secret;
use crate::time_input::parse_time;

/// Check the signature of a captured message
#[derive(Args)]
#[command(override_usage = "\
backhaul verify --secret-file <FILE> --id <ID> --timestamp <TIMESTAMP>
       --signature <SIGNATURE> [OPTIONS] <BODY>")]
#[command(after_help = "\
Example:
  backhaul verify --secret-file secret.txt \\
      --id 0198c0de-0000-7000-8000-000000000000 --timestamp 1767225600 \\
      --signature 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' body.json")]
pub(crate) struct Arguments {
    /// File with the signing secret (whsec_…); can be repeated
    #[arg(long = "secret-file", value_name = "FILE", required = true)]
    secret_files: Vec<PathBuf>,
    /// Value of the webhook-id header
    #[arg(long)]
    id: String,
    /// Value of the webhook-timestamp header
    #[arg(long)]
    timestamp: String,
    /// Value of the webhook-signature header
    #[arg(long)]
    signature: String,
    /// Time when the message arrived [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<Timestamp>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// File with the exact body, - for standard input
    body: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let secrets = arguments
        .secret_files
        .iter()
        .map(|file| Ok(Secret::parse(&read_secret(file)?)?))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let body = read_body(&arguments.body)?;
    let signed = SignedHeaders {
        id: &arguments.id,
        timestamp: &arguments.timestamp,
        signature: &arguments.signature,
    };
    let at = arguments.at.unwrap_or_else(|| Clock::system().now());
    let error = verify(&secrets, signed, &body, at).err().map(|error| error.to_string());
    let result = json!({ "valid": error.is_none(), "reason": error });
    Format::new(arguments.json).print(&result, |_| match &error {
        None => "the signature is valid\n".to_owned(),
        Some(error) => format!("the signature is invalid: {error}\n"),
    })?;
    Ok(if error.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read_body(file: &Path) -> anyhow::Result<Vec<u8>> {
    if file != Path::new("-") {
        return fs::read(file).with_context(|| format!("cannot read {}", file_name(file)));
    }
    let mut body = Vec::new();
    io::stdin().read_to_end(&mut body).context("cannot read standard input")?;
    Ok(body)
}
