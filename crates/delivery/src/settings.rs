//! Settings of the engine: section `[delivery]`.

use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use platform::MemoryBudget;
use platform::config::{
    List,
    range::{self, DAY, HOUR, SECOND, TIB},
};
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::attempt::EndpointClient;
use crate::client::GuardedClient;
use crate::guard::{Guard, SystemResolver};
use crate::outcome::{Schedule, ScheduleError};
use crate::tokens::Tokens;
use crate::window::Limits;

/// In milliseconds. A distant merchant takes longer to respond.
const MIN_TIMEOUT: u64 = 100;
const WEEK: u64 = 7 * DAY;
/// Responses to messages that are longer than 64 KiB may take this part of `max_inflight` besides it.
const LONG_RESPONSES_PART: usize = 4;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, remote = "Self")]
pub struct Settings {
    #[serde(deserialize_with = "range::time::<10, WEEK, _>")]
    pub retry_base: Duration,
    #[serde(deserialize_with = "range::number::<1, 1000, _, _>")]
    pub retry_factor: u32,
    #[serde(deserialize_with = "range::number::<0, 1000, _, _>")]
    pub retries: u32,
    #[serde(deserialize_with = "range::time::<MIN_TIMEOUT, HOUR, _>")]
    pub attempt_timeout: Duration,
    #[serde(deserialize_with = "range::time::<MIN_TIMEOUT, HOUR, _>")]
    pub connect_timeout: Duration,
    #[serde(deserialize_with = "range::time::<MIN_TIMEOUT, HOUR, _>")]
    pub token_timeout: Duration,
    pub https_only: bool,
    pub allowed_networks: List<IpNet>,
    #[serde(deserialize_with = "range::time::<SECOND, DAY, _>")]
    pub lease: Duration,
    pub initial_window: NonZeroU32,
    pub max_window: NonZeroU32,
    pub dispatch_batch: NonZeroU32,
    #[serde(deserialize_with = "range::time::<1, HOUR, _>")]
    pub poll_interval: Duration,
    pub prefetch: NonZeroU16,
    #[serde(rename = "max_inflight", deserialize_with = "range::size::<1, TIB, _, _>")]
    pub max_inflight_bytes: usize,
    pub settle_batch: NonZeroUsize,
    #[serde(rename = "retention", deserialize_with = "range::days::<1, 36_500, _, _>")]
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
        if let Err(error) = settings.schedule() {
            return Err(D::Error::custom(format!("delivery.retries is too high: {error}")));
        }
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
        let long_responses = MemoryBudget::new(self.max_inflight_bytes / LONG_RESPONSES_PART);
        Ok(EndpointClient { client, tokens, timeout: self.attempt_timeout, long_responses })
    }

    pub(crate) fn schedule(&self) -> Result<Schedule, ScheduleError> {
        Schedule::new(self.retry_base, self.retry_factor, self.retries)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use platform::settings;

    use super::*;

    type Sections = HashMap<String, Settings>;

    #[test]
    fn invalid_settings_are_rejected() {
        for (name, value, expected) in [
            ("SETTLE_BATCH", "0", "must be a whole number above 0, not 0"),
            ("DISPATCH_BATCH", "0", "must be a whole number above 0, not 0"),
            ("PREFETCH", "0", "must be a whole number above 0, not 0"),
            ("MAX_INFLIGHT", "0", "must be a size from 1 B to 1.0 TiB, not 0 B"),
            ("MAX_INFLIGHT", "lots", "must be a size such as 64MiB, not \"lots\""),
            ("RETENTION", "36h", "must be whole days from 1 to 36500, not 1day 12h"),
            ("ATTEMPT_TIMEOUT", "0s", "must be a duration from 100ms to 1h, not 0s"),
            ("CONNECT_TIMEOUT", "0s", "must be a duration from 100ms to 1h, not 0s"),
            ("TOKEN_TIMEOUT", "2h", "must be a duration from 100ms to 1h, not 2h"),
            ("POLL_INTERVAL", "0s", "must be a duration from 1ms to 1h, not 0s"),
            ("LEASE", "2days", "must be a duration from 1s to 1day, not 2days"),
            ("LEASE", "40s", "must be longer than two times attempt_timeout"),
            ("RETRY_BASE", "0s", "must be a duration from 10ms to 7days, not 0s"),
            ("RETRY_FACTOR", "0", "must be a whole number from 1 to 1000, not 0"),
            (
                "RETRIES",
                "50",
                "is too high: the last delay of the retry schedule is longer than seven days",
            ),
        ] {
            let variable = format!("TEST__DELIVERY__{name}");
            let url = ("TEST__DATABASE__URL".to_owned(), "postgres://h".to_owned());
            let environment = [url, (variable.clone(), value.to_owned())].into();
            let read = settings::load::<Sections>("test", &[crate::DEFAULTS], None, environment);
            let faults = read.unwrap_err().to_string();
            let setting = format!("delivery.{}", name.to_lowercase());
            let expected =
                format!("one setting of test is wrong:\n  {setting} ({variable}): {expected}");
            assert_eq!(faults, expected);
        }
    }
}
