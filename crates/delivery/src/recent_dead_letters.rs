//! Merchants with dead letters in the last hour. Dead letters of one merchant are usually its own problem;
//! those of many merchants are usually ours.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry::KeyValue;
use platform::telemetry;

const RECENT: Duration = Duration::from_hours(1);

/// The last dead letter of each kind and merchant, as far as this process settled it.
#[derive(Clone, Default)]
pub(crate) struct RecentDeadLetters(Arc<Mutex<HashMap<(&'static str, String), Instant>>>);

impl RecentDeadLetters {
    /// Exports the number of merchants of each kind.
    pub(crate) fn exported() -> Self {
        let recent = Self::default();
        let counted = recent.clone();
        telemetry::meter()
            .u64_observable_gauge("delivery_dead_letter_merchants")
            .with_description("Merchants with a dead letter in the last hour, of this replica")
            .with_callback(move |gauge| {
                for (kind, merchants) in counted.merchants(Instant::now()) {
                    gauge.observe(merchants, &[KeyValue::new("kind", kind)]);
                }
            })
            .build();
        recent
    }

    pub(crate) fn add(&self, kind: &'static str, merchant: &str, now: Instant) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.insert((kind, merchant.to_owned()), now);
    }

    /// Counts the merchants of each kind and forgets older dead letters.
    fn merchants(&self, now: Instant) -> BTreeMap<&'static str, u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.retain(|_, at| now.saturating_duration_since(*at) < RECENT);
        let mut merchants = BTreeMap::new();
        for (kind, _) in last.keys() {
            *merchants.entry(*kind).or_default() += 1;
        }
        merchants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merchant_counts_once_for_an_hour() {
        let (recent, start) = (RecentDeadLetters::default(), Instant::now());
        for (kind, merchant) in [("rma", "acme"), ("rma", "acme"), ("rma", "bolt"), ("asn", "acme")]
        {
            recent.add(kind, merchant, start);
        }
        assert_eq!(recent.merchants(start), BTreeMap::from([("asn", 1), ("rma", 2)]));
        let later = start + Duration::from_mins(59);
        recent.add("rma", "bolt", later);
        assert_eq!(recent.merchants(start + RECENT), BTreeMap::from([("rma", 1)]));
        assert_eq!(recent.merchants(later + RECENT), BTreeMap::new());
    }
}
