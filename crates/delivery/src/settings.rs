//! `[delivery]`.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use ipnet::IpNet;
use platform::config::List;
use serde::Deserialize;

use crate::attempt::Courier;
use crate::client::GuardedClient;
use crate::guard::{Guard, SystemResolver, Transport};
use crate::outcome::Schedule;
use crate::tokens::Tokens;
use crate::window::Limits;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    #[serde(with = "humantime_serde")]
    pub retry_base: Duration,
    pub retry_factor: u32,
    pub retries: u32,
    #[serde(with = "humantime_serde")]
    pub deadline: Duration,
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub token_timeout: Duration,
    pub https_only: bool,
    pub allowed_networks: List<IpNet>,
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    pub initial_window: NonZeroU32,
    pub largest_window: NonZeroU32,
    pub dispatch_batch: u32,
    #[serde(with = "humantime_serde")]
    pub poll: Duration,
    pub prefetch: u16,
    pub concurrency: usize,
    pub slow_concurrency: usize,
    pub settle_batch: usize,
    pub answer_kept: usize,
    pub retention_days: u32,
}

impl Settings {
    pub(crate) fn windows(&self) -> Limits {
        Limits {
            initial: self.initial_window,
            largest: self.largest_window,
            probe_pause: self.retry_base,
        }
    }

    /// Whoever makes the attempts, over one guarded client.
    pub(crate) fn courier(&self) -> anyhow::Result<Courier> {
        anyhow::ensure!(
            self.lease > self.deadline * 2,
            "delivery.lease must be longer than two attempts (delivery.deadline)"
        );
        anyhow::ensure!(
            self.concurrency > 0 && self.settle_batch > 0 && self.dispatch_batch > 0,
            "delivery.concurrency, settle_batch and dispatch_batch must not be 0"
        );
        let schedule = Schedule::new(self.retry_base, self.retry_factor, self.retries)
            .context("delivery.retry_base, retry_factor, retries")?;
        let transport = if self.https_only { Transport::HttpsOnly } else { Transport::HttpToo };
        let guard = Guard { transport, allowed: self.allowed_networks.0.clone() };
        let tls = platform::client_tls()?;
        let client =
            GuardedClient::new(guard, Arc::new(SystemResolver), tls, self.connect_timeout)?;
        let tokens = Tokens::new(client.clone(), self.token_timeout);
        Ok(Courier { client, tokens, schedule, deadline: self.deadline })
    }
}
