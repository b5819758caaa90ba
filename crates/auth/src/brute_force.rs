//! Guessing secrets is slow: an address that fails too often has to wait, for the client it tried
//! and then for all of them. Nobody else notices.

use std::{net::IpAddr, sync::Arc, time::Duration};

use moka::sync::Cache;
use platform::{Tasks, limits::PerMinute};
use tokio::time::Instant;

use crate::settings;

const LONGEST_WAIT: Duration = Duration::from_secs(60);
const REMEMBERED: u64 = 100_000;

pub(crate) struct BruteForce {
    per_client: PerMinute<(IpAddr, String)>,
    per_address: PerMinute<IpAddr>,
    waiting: Cache<(IpAddr, Option<String>), Instant>,
    pub(crate) floor: Duration,
}

impl BruteForce {
    pub(crate) fn start(settings: &settings::BruteForce, tasks: &Tasks) -> Arc<Self> {
        let guard = Arc::new(Self {
            per_client: PerMinute::new(settings.per_client),
            per_address: PerMinute::new(settings.per_address),
            waiting: Cache::builder().max_capacity(REMEMBERED).time_to_live(LONGEST_WAIT).build(),
            floor: settings.floor,
        });
        let same = guard.clone();
        tasks.every("brute-force", LONGEST_WAIT, move || {
            same.per_client.forget_idle();
            same.per_address.forget_idle();
            std::future::ready(())
        });
        guard
    }

    /// How long this address still has to wait before it may try this client, if at all.
    pub(crate) fn wait(&self, address: IpAddr, client: &str) -> Option<Duration> {
        let keys = [(address, Some(client.to_owned())), (address, None)];
        let until = keys.iter().filter_map(|key| self.waiting.get(key)).max()?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// This address failed with this client.
    pub(crate) fn failed(&self, address: IpAddr, client: &str) {
        if let Err(wait) = self.per_client.take(&(address, client.to_owned())) {
            self.waiting.insert(
                (address, Some(client.to_owned())),
                Instant::now() + wait.min(LONGEST_WAIT),
            );
        }
        if let Err(wait) = self.per_address.take(&address) {
            self.waiting.insert((address, None), Instant::now() + wait.min(LONGEST_WAIT));
        }
    }
}
