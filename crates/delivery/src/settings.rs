//! Settings of the engine: section `[delivery]`.

use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use platform::config::List;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::attempt::EndpointClient;
use crate::client::GuardedClient;
use crate::guard::{Guard, SystemResolver};
use crate::outcome::{Schedule, ScheduleError};
use crate::tokens::Tokens;
use crate::window::Limits;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Settings {
    #[serde(with = "humantime_serde")]
    pub retry_base: Duration,
    pub retry_factor: u32,
    pub retries: u32,
    #[serde(with = "humantime_serde")]
    pub attempt_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub connect_timeout: Duration,
    #[serde(with = "humantime_serde")]
    pub token_timeout: Duration,
    pub https_only: bool,
    pub allowed_networks: List<IpNet>,
    #[serde(with = "humantime_serde")]
    pub lease: Duration,
    pub initial_window: NonZeroU32,
    pub max_window: NonZeroU32,
    pub dispatch_batch: NonZeroU32,
    #[serde(with = "humantime_serde")]
    pub poll_interval: Duration,
    pub prefetch: NonZeroU16,
    pub max_inflight_bytes: NonZeroUsize,
    pub settle_batch: NonZeroUsize,
    pub retention_days: u32,
}

/// Rejects contradictory settings before the service starts.
impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `remote` makes the derived implementation an inherent function.
        let settings = Self::deserialize(deserializer)?;
        if settings.lease <= settings.attempt_timeout.saturating_mul(2) {
            return Err(D::Error::custom(
                "delivery.lease must be longer than two times attempt_timeout",
            ));
        }
        settings.schedule().map_err(D::Error::custom)?;
        Ok(settings)
    }
}

impl Settings {
    pub(crate) fn windows(&self) -> Limits {
        Limits { initial: self.initial_window, max: self.max_window, probe_delay: self.retry_base }
    }

    /// Returns the window of an endpoint, whose size is stored after its first attempt.
    pub(crate) fn window_size(&self, stored: Option<i32>) -> u32 {
        let stored = stored.map(|size| u32::try_from(size).unwrap_or_default());
        stored.unwrap_or(self.initial_window.get()).clamp(1, self.max_window.get())
    }

    pub(crate) fn endpoint_client(&self) -> anyhow::Result<EndpointClient> {
        let guard = Guard::new(self.https_only, &self.allowed_networks);
        let tls = platform::client_tls()?;
        let client =
            GuardedClient::new(guard, Arc::new(SystemResolver), tls, self.connect_timeout)?;
        let tokens = Tokens::new(client.clone(), self.token_timeout);
        Ok(EndpointClient { client, tokens, timeout: self.attempt_timeout })
    }

    pub(crate) fn schedule(&self) -> Result<Schedule, ScheduleError> {
        Schedule::new(self.retry_base, self.retry_factor, self.retries)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use expect_test::{Expect, expect};
    use platform::config;

    use super::*;

    type Sections = HashMap<String, Settings>;

    #[track_caller]
    fn check_rejected(key: &str, value: &str, message: &Expect) {
        let environment = [("TEST__DATABASE__URL", "postgres://h"), (key, value)];
        let environment = environment.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let defaults = [crate::DEFAULTS];
        let read = config::load::<Sections>("test", &defaults, None, environment.into());
        let faults = read.unwrap_err().to_string();
        message.assert_eq(faults.lines().last().unwrap_or_default().trim());
    }

    #[test]
    fn invalid_settings_are_rejected() {
        check_rejected(
            "TEST__DELIVERY__SETTLE_BATCH",
            "0",
            &expect![
                "delivery.settle_batch (TEST__DELIVERY__SETTLE_BATCH): must be a whole number above 0, not 0"
            ],
        );
        check_rejected(
            "TEST__DELIVERY__DISPATCH_BATCH",
            "0",
            &expect![
                "delivery.dispatch_batch (TEST__DELIVERY__DISPATCH_BATCH): must be a whole number above 0, not 0"
            ],
        );
        check_rejected(
            "TEST__DELIVERY__PREFETCH",
            "0",
            &expect![
                "delivery.prefetch (TEST__DELIVERY__PREFETCH): must be a whole number above 0, not 0"
            ],
        );
        check_rejected(
            "TEST__DELIVERY__MAX_INFLIGHT_BYTES",
            "0",
            &expect![
                "delivery.max_inflight_bytes (TEST__DELIVERY__MAX_INFLIGHT_BYTES): must be a whole number above 0, not 0"
            ],
        );
        check_rejected(
            "TEST__DELIVERY__LEASE",
            "40s",
            &expect![
                "delivery.lease (TEST__DELIVERY__LEASE): must be longer than two times attempt_timeout"
            ],
        );
        check_rejected(
            "TEST__DELIVERY__RETRY_FACTOR",
            "0",
            &expect!["delivery (TEST__DELIVERY__*): the factor of the retry schedule is zero"],
        );
        check_rejected(
            "TEST__DELIVERY__RETRIES",
            "50",
            &expect![
                "delivery (TEST__DELIVERY__*): the last delay of the retry schedule is longer than seven days"
            ],
        );
    }
}
