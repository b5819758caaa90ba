//! `backhaul verify`: whether a captured message was signed by us.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use delivery::signing::{Secret, SignedHeaders, verify};
use platform::{Clock, Timestamp};

use crate::output::print;
use crate::settings::read_secret;

/// Check the signature of a captured message
#[derive(Args)]
#[command(after_help = "\
Example:
  backhaul verify --secret-file secret.txt --id 0198c0de-0000-7000-8000-000000000000 \\
      --timestamp 1767225600 --signature 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' body.json")]
pub(crate) struct Arguments {
    /// File with the signing secret (whsec_…); can be repeated
    #[arg(long = "secret-file", value_name = "FILE", required = true)]
    secret_files: Vec<PathBuf>,
    /// The header webhook-id
    #[arg(long)]
    id: String,
    /// The header webhook-timestamp
    #[arg(long)]
    timestamp: String,
    /// The header webhook-signature
    #[arg(long)]
    signature: String,
    /// When it arrived; now unless given
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// The body, byte for byte; - for standard input
    body: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let secrets = arguments
        .secret_files
        .iter()
        .map(|file| Ok(Secret::parse(&read_secret(file)?)?))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let body = read(&arguments.body)?;
    let signed = SignedHeaders {
        id: &arguments.id,
        timestamp: &arguments.timestamp,
        signature: &arguments.signature,
    };
    let at = arguments.at.unwrap_or_else(|| Clock::system().now());
    match verify(&secrets, signed, &body, at) {
        Ok(()) => {
            print("the signature is good\n")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            print(&format!("the signature is not good: {error}\n"))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    if file != Path::new("-") {
        return fs::read(file).with_context(|| format!("{} cannot be read", file.display()));
    }
    let mut body = Vec::new();
    io::stdin().read_to_end(&mut body).context("standard input cannot be read")?;
    Ok(body)
}
