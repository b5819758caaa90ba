//! Orders gathered into messages.

use std::io;

use domain::order::OrderPolicy;

use super::check::check;
use super::file::Entry;
use super::report::Rejection;

/// A message stays well below the five mebibytes that the intake accepts.
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;

/// An order that is worth sending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sendable {
    pub(crate) line: u64,
    pub(crate) identifier: String,
    pub(crate) bytes: Vec<u8>,
}

/// So many orders of a file: the good ones for one message, and the others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) number: u64,
    /// Orders of the file up to the end of this batch.
    pub(crate) end: u64,
    pub(crate) orders: Vec<Sendable>,
    pub(crate) rejected: Vec<Rejection>,
}

/// Gathers the orders of a file, leaving out those that an earlier run dealt with.
pub(crate) struct Batches<I> {
    entries: I,
    size: usize,
    skip: u64,
    number: u64,
    seen: u64,
    /// What ended the batch before: it did not fit, or could not be read.
    held: Option<io::Result<Entry>>,
}

impl<I: Iterator<Item = io::Result<Entry>>> Batches<I> {
    pub(crate) fn new(entries: I, size: usize, skip: u64) -> Self {
        Self { entries, size, skip, number: 0, seen: 0, held: None }
    }

    fn next_entry(&mut self) -> Option<io::Result<Entry>> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        while self.seen < self.skip {
            match self.entries.next()? {
                Ok(_) => self.seen += 1,
                Err(error) => return Some(Err(error)),
            }
        }
        self.entries.next()
    }

    fn gather(&mut self) -> Batch {
        let mut batch = Batch { number: self.number, ..Batch::default() };
        let mut bytes = 0;
        while batch.orders.len() + batch.rejected.len() < self.size {
            let entry = match self.next_entry() {
                None => break,
                Some(Ok(entry)) if bytes == 0 || bytes + entry.bytes.len() <= MAX_BATCH_BYTES => {
                    entry
                }
                Some(unfit) => {
                    self.held = Some(unfit);
                    break;
                }
            };
            bytes += entry.bytes.len();
            self.seen += 1;
            let Entry { line, bytes } = entry;
            match check(&bytes, OrderPolicy::default()) {
                Ok(identifier) => batch.orders.push(Sendable { line, identifier, bytes }),
                Err(errors) => {
                    let order = identifier_of(&bytes);
                    batch.rejected.push(Rejection { line, order, errors });
                }
            }
        }
        batch.end = self.seen;
        batch
    }
}

impl<I: Iterator<Item = io::Result<Entry>>> Iterator for Batches<I> {
    type Item = io::Result<Batch>;

    fn next(&mut self) -> Option<io::Result<Batch>> {
        let batch = self.gather();
        if batch.orders.is_empty() && batch.rejected.is_empty() {
            return self.held.take()?.err().map(Err);
        }
        self.number += 1;
        Some(Ok(batch))
    }
}

/// The message that carries these orders, byte for byte as they stand in the file.
pub(crate) fn message<'a>(orders: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    const OPENING: &[u8] = br#"{"returns_portal_order":{"orders":["#;
    let mut message = OPENING.to_vec();
    for (index, order) in orders.into_iter().enumerate() {
        if index > 0 {
            message.push(b',');
        }
        message.extend_from_slice(order);
    }
    message.extend_from_slice(b"]}}");
    message
}

/// What a rejected order calls itself, if it says so.
pub(crate) fn identifier_of(order: &[u8]) -> String {
    let value = serde_json::from_slice::<serde_json::Value>(order).ok();
    let identifier = value.as_ref().and_then(|order| order.get("identifier")?.as_str());
    identifier.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use domain::order::sample::{Orders, document};

    use super::*;

    fn entries(count: u64) -> Vec<Entry> {
        let orders = Orders::new(5, "2026-03-01T00:00:00Z".parse().unwrap());
        let entries = (1..=count).zip(orders);
        entries
            .map(|(line, order)| Entry { line, bytes: document(&order).to_string().into_bytes() })
            .collect()
    }

    fn batches(entries: Vec<Entry>, size: usize, skip: u64) -> Vec<Batch> {
        Batches::new(entries.into_iter().map(Ok), size, skip).map(Result::unwrap).collect()
    }

    #[track_caller]
    fn check(batches: &[Batch], expected: &[(u64, usize, usize, u64)]) {
        let seen: Vec<_> = batches
            .iter()
            .map(|batch| (batch.number, batch.orders.len(), batch.rejected.len(), batch.end))
            .collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn good_orders_and_bad_ones_go_separate_ways() {
        let mut orders = entries(5);
        orders[1].bytes = br#"{"identifier": "1002"}"#.to_vec();
        orders[4].bytes = b"not JSON".to_vec();
        let batches = batches(orders, 2, 0);
        check(&batches, &[(0, 1, 1, 2), (1, 2, 0, 4), (2, 0, 1, 5)]);
        assert_eq!((batches[0].rejected[0].line, &*batches[0].rejected[0].order), (2, "1002"));
        assert_eq!((batches[2].rejected[0].line, &*batches[2].rejected[0].order), (5, ""));
    }

    #[test]
    fn what_an_earlier_run_dealt_with_is_left_out() {
        check(&batches(entries(5), 2, 3), &[(0, 2, 0, 5)]);
        check(&batches(entries(5), 2, 5), &[]);
        check(&batches(entries(5), 2, 9), &[]);
    }

    #[test]
    fn a_batch_is_bounded_in_bytes() {
        let mut orders = entries(3);
        for order in &mut orders {
            order.bytes.resize(3 * 1024 * 1024, b' ');
        }
        check(&batches(orders, 100, 0), &[(0, 1, 0, 1), (1, 1, 0, 2), (2, 1, 0, 3)]);
    }

    #[test]
    fn what_cannot_be_read_takes_nothing_before_it_along() {
        let broken = Err(io::Error::other("broken"));
        let all = entries(3).into_iter().map(Ok).chain([broken]);
        let mut batches = Batches::new(all, 2, 0);
        let ends: Vec<_> = batches.by_ref().take(2).map(|batch| batch.unwrap().end).collect();
        assert_eq!(ends, [2, 3]);
        assert_eq!(batches.next().unwrap().unwrap_err().to_string(), "broken");
        assert!(batches.next().is_none());
    }

    #[test]
    fn a_message_holds_the_orders_as_they_stand() {
        let batches = batches(entries(3), 10, 0);
        let message: serde_json::Value =
            serde_json::from_slice(&message(batches[0].orders.iter().map(|it| &*it.bytes)))
                .unwrap();
        assert_eq!(message["returns_portal_order"]["orders"].as_array().unwrap().len(), 3);
    }
}
