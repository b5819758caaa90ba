//! A few made-up orders for a merchant to try things out with.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use domain::order::Order;
use domain::order::sample::{Orders, message};
use platform::Clock;

use super::gateway::{Gateway, Parts, Verdict};
use crate::settings::Settings;

const COUNT: usize = 20;

/// Publishes the orders in the file, which is written if it is not there; returns how many.
pub(crate) async fn publish_samples(file: &Path, settings: &Settings) -> anyhow::Result<usize> {
    if !file.exists() {
        write(file).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let message = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let gateway = Gateway::known(settings)?;
    match gateway.send(&message, Parts::One).await? {
        Verdict::Accepted(outcomes) => Ok(outcomes.len()),
        verdict => bail!("the order intake refuses {}: {verdict:?}", file.display()),
    }
}

fn write(file: &Path) -> std::io::Result<()> {
    let now = Clock::system().now();
    let seed = now.timestamp_micros().unsigned_abs();
    let orders: Vec<Order> = Orders::new(seed, now).take(COUNT).collect();
    let draft = file.with_extension("new");
    fs::write(&draft, message(&orders).to_string()).and_then(|()| fs::rename(&draft, file))
}
