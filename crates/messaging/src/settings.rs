//! Typed settings. `default.toml` has the defaults.

use std::{
    num::{NonZeroU16, NonZeroU32, NonZeroUsize},
    time::Duration,
};

use platform::config::range::{self, CENTURY, HOUR};
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::connection;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// `[broker]`.
// `remote = "Self"` derives a function instead of the trait. The trait below calls it and then checks the
// settings against each other.
#[derive(Debug, Clone, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct Settings {
    /// `amqp://` or `amqps://`, with user, password and virtual host.
    #[serde(deserialize_with = "connection::deserialize_url")]
    pub url: SecretString,
    pub namespace: String,
    pub prefetch: NonZeroU16,
    pub batch_size: NonZeroUsize,
    pub relay_batch_size: NonZeroUsize,
    #[serde(deserialize_with = "range::time::<10, HOUR, _>")]
    pub relay_poll_interval: Duration,
    #[serde(rename = "event_retention", deserialize_with = "range::days::<1, 36_500, _, _>")]
    pub event_retention_days: u16,
    pub republish_per_second: NonZeroU32,
    #[serde(deserialize_with = "range::time::<HOUR, CENTURY, _>")]
    pub inbox_retention: Duration,
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let settings = Self::deserialize(deserializer)?;
        // Whole days are dropped, so an event is kept for up to a day longer.
        let kept = settings.event_retention() + DAY;
        if settings.inbox_retention < kept {
            return Err(D::Error::custom(format!(
                "broker.inbox_retention must be at least {} days, one more than \
                 broker.event_retention: an event that is published again would take effect twice",
                kept.as_secs() / DAY.as_secs()
            )));
        }
        Ok(settings)
    }
}

impl Settings {
    /// How long events can be published again.
    pub(crate) fn event_retention(&self) -> Duration {
        DAY * u32::from(self.event_retention_days)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use platform::settings;

    use super::*;
    use crate::DEFAULTS;

    fn read(own: &[(&str, &str)]) -> Result<(), String> {
        let given = [("DATABASE__URL", "postgres://h"), ("BROKER__URL", "amqp://h")];
        let own = own.iter().map(|(name, value)| (format!("TEST__BROKER__{name}"), *value));
        let given = given.iter().map(|(name, value)| (format!("TEST__{name}"), *value)).chain(own);
        let given = given.map(|(name, value)| (name, value.to_owned())).collect();
        let loaded = settings::load::<HashMap<String, Settings>>("test", &[DEFAULTS], None, given);
        loaded.map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn unusable_settings_are_rejected() {
        read(&[("RELAY_BATCH_SIZE", "1")]).unwrap();
        read(&[("URL", "amqps://user:secret@host:5671/%2f")]).unwrap();
        for (name, value) in [
            ("RELAY_BATCH_SIZE", "0"),
            ("BATCH_SIZE", "0"),
            ("PREFETCH", "0"),
            ("EVENT_RETENTION", "0s"),
            ("REPUBLISH_PER_SECOND", "0"),
            ("RELAY_POLL_INTERVAL", "0s"),
            ("INBOX_RETENTION", "1000years"),
            ("URL", "rabbitmq:5672"),
            ("URL", "http://user:secret@host"),
        ] {
            let rejected = read(&[(name, value)]).unwrap_err();
            assert!(rejected.contains(&format!("broker.{}", name.to_lowercase())), "{rejected}");
            assert!(!rejected.contains("secret"), "{rejected}");
        }
    }

    #[test]
    fn ids_of_handled_events_are_kept_longer_than_the_events() {
        read(&[("EVENT_RETENTION", "30days"), ("INBOX_RETENTION", "31days")]).unwrap();
        for own in [
            &[("INBOX_RETENTION", "191h")][..],
            &[("EVENT_RETENTION", "8days")],
            &[("EVENT_RETENTION", "30days"), ("INBOX_RETENTION", "30days 23h")],
        ] {
            let rejected = read(own).unwrap_err();
            assert!(rejected.contains("broker.inbox_retention"), "{rejected}");
            assert!(rejected.contains("must be at least"), "{rejected}");
        }
    }
}
