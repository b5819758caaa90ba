//! Batches of orders, one message each.

use std::io;

use domain::order::OrderPolicy;

use super::check::{CheckedOrder, check, describe_warning};
use super::file::RawOrder;
use super::report::Rejection;

/// Leaves a margin below the 5 MiB that the order intake accepts.
const MAX_REQUEST_BYTES: usize = 4 * 1024 * 1024;

/// An order that passed validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ValidOrder {
    pub(crate) line: u64,
    pub(crate) identifier: String,
    pub(crate) bytes: Vec<u8>,
}

/// Consecutive orders of a file: the valid ones, which form one message, and the rejected ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) number: u64,
    /// Number of orders in the file up to the end of this batch.
    pub(crate) end: u64,
    pub(crate) orders: Vec<ValidOrder>,
    pub(crate) rejected: Vec<Rejection>,
    /// Warnings about the valid and the rejected orders, each with its line in the file.
    pub(crate) warnings: Vec<(u64, String)>,
}

impl Batch {
    /// Validates an order and adds it.
    fn add(&mut self, order: RawOrder) {
        let checked = check(&order, OrderPolicy::default());
        let line = checked.line;
        let describe = |it| (line, describe_warning(&checked.identifier, it));
        self.warnings.extend(checked.warnings.iter().map(describe));
        if checked.errors.is_empty() {
            self.orders.push(ValidOrder {
                line,
                identifier: checked.identifier,
                bytes: order.bytes,
            });
        } else {
            let CheckedOrder { identifier: order, errors, .. } = checked;
            self.rejected.push(Rejection { line, order, errors });
        }
    }
}

/// Groups the orders of a file into batches and skips those that an earlier run completed.
pub(crate) struct Batches<I> {
    orders: I,
    size: usize,
    skip: u64,
    number: u64,
    read: u64,
    /// The result that ended the previous batch: an order that did not fit, or a read error.
    pending: Option<io::Result<RawOrder>>,
}

impl<I: Iterator<Item = io::Result<RawOrder>>> Batches<I> {
    pub(crate) fn new(orders: I, size: usize, skip: u64) -> Self {
        Self { orders, size, skip, number: 0, read: 0, pending: None }
    }

    fn next_order(&mut self) -> Option<io::Result<RawOrder>> {
        if let Some(pending) = self.pending.take() {
            return Some(pending);
        }
        while self.read < self.skip {
            match self.orders.next()? {
                Ok(_) => self.read += 1,
                Err(error) => return Some(Err(error)),
            }
        }
        self.orders.next()
    }

    fn next_batch(&mut self) -> Batch {
        let mut batch = Batch { number: self.number, ..Batch::default() };
        let mut bytes = 0;
        while batch.orders.len() + batch.rejected.len() < self.size {
            let order = match self.next_order() {
                None => break,
                Some(Ok(order)) if bytes == 0 || bytes + order.bytes.len() <= MAX_REQUEST_BYTES => {
                    order
                }
                Some(next) => {
                    self.pending = Some(next);
                    break;
                }
            };
            bytes += order.bytes.len();
            self.read += 1;
            batch.add(order);
        }
        batch.end = self.read;
        batch
    }
}

impl<I: Iterator<Item = io::Result<RawOrder>>> Iterator for Batches<I> {
    type Item = io::Result<Batch>;

    fn next(&mut self) -> Option<io::Result<Batch>> {
        let batch = self.next_batch();
        if batch.orders.is_empty() && batch.rejected.is_empty() {
            return self.pending.take()?.err().map(Err);
        }
        self.number += 1;
        Some(Ok(batch))
    }
}

#[cfg(test)]
mod tests {
    use domain::order::sample::{Orders, document};

    use super::*;
    use crate::orders::message::message;

    fn orders(count: u64) -> Vec<RawOrder> {
        let orders = Orders::new(5, "2026-03-01T00:00:00Z".parse().unwrap());
        (1..=count)
            .zip(orders)
            .map(|(line, order)| RawOrder {
                line,
                column: 1,
                bytes: document(&order).to_string().into_bytes(),
            })
            .collect()
    }

    fn batches(orders: Vec<RawOrder>, size: usize, skip: u64) -> Vec<Batch> {
        Batches::new(orders.into_iter().map(Ok), size, skip).map(Result::unwrap).collect()
    }

    #[track_caller]
    fn check(batches: &[Batch], expected: &[(u64, usize, usize, u64)]) {
        let actual: Vec<_> = batches
            .iter()
            .map(|batch| (batch.number, batch.orders.len(), batch.rejected.len(), batch.end))
            .collect();
        assert_eq!(actual, expected);
    }

    #[test]
    fn valid_and_rejected_orders_are_separated() {
        let mut orders = orders(5);
        orders[1].bytes = br#"{"identifier": "1002"}"#.to_vec();
        orders[4].bytes = b"not JSON".to_vec();
        let batches = batches(orders, 2, 0);
        check(&batches, &[(0, 1, 1, 2), (1, 2, 0, 4), (2, 0, 1, 5)]);
        assert_eq!((batches[0].rejected[0].line, &*batches[0].rejected[0].order), (2, "1002"));
        assert_eq!((batches[2].rejected[0].line, &*batches[2].rejected[0].order), (5, ""));
    }

    #[test]
    fn a_rejected_order_has_the_line_of_its_syntax_error() {
        let mut orders = orders(1);
        orders[0].bytes = b"{\n \"identifier\": \"1\"\n \"title\": 1}".to_vec();
        let rejected = &batches(orders, 2, 0)[0].rejected[0];
        assert_eq!((rejected.line, rejected.errors.len()), (3, 1));
    }

    #[test]
    fn a_rejected_order_has_warnings_too() {
        let mut orders = orders(1);
        orders[0].bytes = br#"{"identifier": "1001", "curency": "USD"}"#.to_vec();
        let batches = batches(orders, 2, 0);
        check(&batches, &[(0, 0, 1, 1)]);
        let warning =
            "warning: order 1001: $.curency: `curency` is not a field; did you mean `currency`?";
        assert_eq!(batches[0].warnings, [(1, warning.to_owned())]);
    }

    #[test]
    fn orders_of_an_earlier_run_are_skipped() {
        check(&batches(orders(5), 2, 3), &[(0, 2, 0, 5)]);
        check(&batches(orders(5), 2, 5), &[]);
        check(&batches(orders(5), 2, 9), &[]);
    }

    #[test]
    fn a_batch_has_a_size_limit() {
        let mut orders = orders(3);
        for order in &mut orders {
            order.bytes.resize(3 * 1024 * 1024, b' ');
        }
        check(&batches(orders, 100, 0), &[(0, 1, 0, 1), (1, 1, 0, 2), (2, 1, 0, 3)]);
    }

    #[test]
    fn orders_before_a_read_error_are_batched() {
        let broken = Err(io::Error::other("broken"));
        let all = orders(3).into_iter().map(Ok).chain([broken]);
        let mut batches = Batches::new(all, 2, 0);
        let ends: Vec<_> = batches.by_ref().take(2).map(|batch| batch.unwrap().end).collect();
        assert_eq!(ends, [2, 3]);
        assert_eq!(batches.next().unwrap().unwrap_err().to_string(), "broken");
        assert!(batches.next().is_none());
    }

    #[test]
    fn a_message_contains_all_orders_of_a_batch() {
        let batches = batches(orders(3), 10, 0);
        let message: serde_json::Value =
            serde_json::from_slice(&message(batches[0].orders.iter().map(|it| &*it.bytes)))
                .unwrap();
        assert_eq!(message["returns_portal_order"]["orders"].as_array().unwrap().len(), 3);
    }
}
