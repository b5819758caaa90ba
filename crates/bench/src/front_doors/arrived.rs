//! Compares the messages that arrived with the requests that caused them.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::latencies::{millis, quantile};
use crate::load::Response;
use crate::processes::count;
use crate::stack::receiver::Arrival;

/// A request that was accepted, and the message that it causes.
pub(super) struct Sent {
    subject: String,
    sequence: i64,
    at: Instant,
    accepted_at: Instant,
}

impl Sent {
    pub(super) fn new(subject: String, sequence: i64, response: &Response) -> Self {
        Self { subject, sequence, at: response.sent_at, accepted_at: response.responded_at }
    }
}

pub(crate) struct Arrived {
    /// Times from requests to the arrival of their messages, sorted.
    times: Vec<Duration>,
    /// Median time from a request to its response.
    pub(super) accepted_millis: f64,
    /// Messages from the first request to the last arrival.
    pub(super) per_second: f64,
    /// Most messages that were accepted and had not arrived.
    pub(super) longest_backlog: usize,
    lost: usize,
    /// Messages that arrived again.
    pub(super) duplicates: usize,
    /// Messages that arrived after a later one about the same subject.
    pub(super) out_of_order: usize,
}

impl Arrived {
    pub(super) fn new(sent: Vec<Sent>, arrivals: Vec<Arrival>) -> anyhow::Result<Self> {
        let first = sent.iter().map(|it| it.at).min().context("nothing was sent")?;
        let last = arrivals.iter().map(|it| it.at).max().context("nothing arrived")?;
        let mut ids = HashSet::new();
        let mut arrived_at = HashMap::new();
        let mut newest = HashMap::new();
        let mut duplicates = 0;
        let mut out_of_order = 0;
        for Arrival { at, id, subject, sequence } in arrivals {
            if !ids.insert(id) {
                duplicates += 1;
                continue;
            }
            let newest = newest.entry(subject.clone()).or_insert(sequence);
            if sequence < *newest {
                out_of_order += 1;
            }
            *newest = sequence.max(*newest);
            arrived_at.insert((subject, sequence), at);
        }
        let mut times = Vec::with_capacity(sent.len());
        let mut accepted = Vec::with_capacity(sent.len());
        let mut changes = Vec::with_capacity(2 * sent.len());
        let number = sent.len();
        for Sent { subject, sequence, at, accepted_at } in sent {
            accepted.push(accepted_at - at);
            changes.push((accepted_at, 1));
            if let Some(arrived_at) = arrived_at.get(&(subject, sequence)) {
                times.push(arrived_at.saturating_duration_since(at));
                changes.push((*arrived_at, -1));
            }
        }
        times.sort_unstable();
        accepted.sort_unstable();
        Ok(Self {
            accepted_millis: millis(quantile(&accepted, 0.50)),
            per_second: count(times.len()) / (last - first).as_secs_f64(),
            longest_backlog: longest(changes),
            lost: number - times.len(),
            times,
            duplicates,
            out_of_order,
        })
    }

    /// The time from request to arrival at a quantile between 0 and 1, in milliseconds.
    pub(crate) fn millis(&self, at: f64) -> f64 {
        millis(quantile(&self.times, at))
    }

    /// Fails if a message was lost or overtaken.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        anyhow::ensure!(self.lost == 0, "{} messages did not arrive", self.lost);
        anyhow::ensure!(self.out_of_order == 0, "{} messages were overtaken", self.out_of_order);
        Ok(())
    }
}

/// The highest sum of changes up to any time.
fn longest(mut changes: Vec<(Instant, i64)>) -> usize {
    changes.sort_unstable();
    let sums = changes.into_iter().scan(0, |sum, (_, change)| {
        *sum += change;
        Some(*sum)
    });
    usize::try_from(sums.max().unwrap_or(0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        *START + Duration::from_millis(millis)
    }

    fn sent(subject: &str, sequence: i64, millis: u64) -> Sent {
        Sent { subject: subject.to_owned(), sequence, at: at(millis), accepted_at: at(millis + 1) }
    }

    fn arrival(subject: &str, sequence: i64, millis: u64) -> Arrival {
        let id = format!("{subject}-{sequence}");
        Arrival { at: at(millis), id, subject: subject.to_owned(), sequence }
    }

    #[test]
    fn messages_are_matched_with_their_requests() {
        let sent = vec![sent("a", 1, 0), sent("b", 1, 0), sent("a", 2, 2)];
        let arrivals = vec![arrival("b", 1, 4), arrival("a", 1, 6), arrival("a", 2, 10)];
        let arrived = Arrived::new(sent, arrivals).unwrap();
        arrived.check().unwrap();
        assert_eq!(arrived.times, [4, 6, 8].map(Duration::from_millis));
        assert_eq!(arrived.longest_backlog, 3);
        assert_eq!(arrived.duplicates, 0);
        assert!((arrived.per_second - 300.0).abs() < 1e-6);
    }

    #[test]
    fn lost_repeated_and_overtaken_messages_are_found() {
        let requests = || vec![sent("a", 1, 0), sent("a", 2, 2)];
        let lost = Arrived::new(requests(), vec![arrival("a", 1, 4), arrival("a", 1, 5)]).unwrap();
        assert_eq!((lost.lost, lost.duplicates), (1, 1));
        assert!(lost.check().is_err());
        let overtaken = vec![arrival("a", 2, 4), arrival("a", 1, 5)];
        let overtaken = Arrived::new(requests(), overtaken).unwrap();
        assert_eq!((overtaken.lost, overtaken.out_of_order), (0, 1));
        assert!(overtaken.check().is_err());
    }
}
