//! Sends batches to the order intake, several at a time.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::future;
use std::io;
use std::rc::Rc;

use domain::json::FieldError;
use domain::order::OrderOutcome;
use futures_util::stream::{self, LocalBoxStream, StreamExt as _};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Importer;
use crate::orders::batch::{Batch, ValidOrder};
use crate::orders::check::order_is_invalid;
use crate::orders::intake_client::Decision;
use crate::orders::message::{message, order_error};
use crate::orders::report::Rejection;

/// A batch whose orders are all stored or rejected.
#[derive(Debug)]
pub(super) struct FinishedBatch {
    pub(super) number: u64,
    pub(super) end: u64,
    pub(super) outcomes: Vec<OrderOutcome>,
    pub(super) rejected: Vec<Rejection>,
    /// Warnings about orders, each with its line in the file.
    pub(super) warnings: Vec<(u64, String)>,
}

impl Importer {
    /// Reads and validates on a thread of its own and sends several batches at once. A batch waits
    /// for earlier batches in flight that contain one of its orders. After a read error the batches
    /// before it are still sent.
    pub(super) fn send_all(
        &self,
        batches: impl Iterator<Item = io::Result<Batch>> + Send + 'static,
        interrupted: watch::Receiver<bool>,
    ) -> LocalBoxStream<'_, anyhow::Result<FinishedBatch>> {
        let batches = interruptible(read_on_thread(batches, self.parallel), interrupted);
        let read_error = Rc::new(Cell::new(None));
        let error_slot = read_error.clone();
        let valid = batches.scan((), move |(), batch| {
            future::ready(batch.map_err(|error| error_slot.set(Some(error))).ok())
        });
        let in_flight = Rc::new(InFlightBatches::default());
        let finished = valid.map(move |batch| {
            let in_flight = in_flight.clone();
            let number = batch.number;
            let predecessors = in_flight.add(&batch);
            async move {
                for predecessor in predecessors {
                    predecessor.cancelled().await;
                }
                let finished = self.send_batch(batch).await;
                in_flight.remove(number);
                finished
            }
        });
        let read_error =
            stream::once(async move { read_error.take().map(|error| Err(error.into())) });
        finished
            .buffer_unordered(self.parallel)
            .chain(read_error.flat_map(stream::iter))
            .boxed_local()
    }

    /// Sends a batch. Rejected orders are removed and a message that is too large is halved until
    /// every order is stored or rejected.
    async fn send_batch(&self, batch: Batch) -> anyhow::Result<FinishedBatch> {
        let Batch { number, end, orders, mut rejected, warnings } = batch;
        let mut outcomes = Vec::with_capacity(orders.len());
        let mut remaining = vec![orders];
        while let Some(orders) = remaining.pop() {
            if orders.is_empty() {
                continue;
            }
            let message = message(orders.iter().map(|order| &*order.bytes));
            match self.intake.send(&message, orders.len()).await? {
                Decision::Accepted(accepted) => outcomes.extend(accepted),
                Decision::Rejected(errors) => {
                    let (valid, invalid) = split_rejected(orders, &errors);
                    rejected.extend(invalid);
                    remaining.push(valid);
                }
                Decision::TooLarge => match split_in_half(orders) {
                    Ok((first, second)) => remaining.extend([second, first]),
                    Err(single) => rejected.extend(single),
                },
            }
        }
        Ok(FinishedBatch { number, end, outcomes, rejected, warnings })
    }
}

/// Reads batches on a thread. A final `None` marks the end of the file.
fn read_on_thread(
    batches: impl Iterator<Item = io::Result<Batch>> + Send + 'static,
    capacity: usize,
) -> mpsc::Receiver<Option<io::Result<Batch>>> {
    let (sender, receiver) = mpsc::channel(capacity);
    std::thread::spawn(move || {
        for batch in batches {
            let is_last = batch.is_err();
            if sender.blocking_send(Some(batch)).is_err() || is_last {
                return;
            }
        }
        drop(sender.blocking_send(None));
    });
    receiver
}

/// A stream of the batches that ends at the interrupt.
fn interruptible(
    receiver: mpsc::Receiver<Option<io::Result<Batch>>>,
    interrupted: watch::Receiver<bool>,
) -> impl stream::Stream<Item = io::Result<Batch>> {
    stream::unfold((receiver, interrupted), |(mut receiver, mut interrupted)| async {
        let batch = tokio::select! {
            biased;
            Ok(_) = interrupted.wait_for(|interrupted| *interrupted) => None,
            // Without the end marker the reader has panicked.
            batch = receiver.recv() => batch.unwrap_or_else(|| Some(Err(reader_panicked()))),
        };
        batch.map(|batch| (batch, (receiver, interrupted)))
    })
}

fn reader_panicked() -> io::Error {
    io::Error::other("the reader panicked: this is a bug in this program")
}

/// The batches in flight and their orders. The order intake keeps the later of two snapshots with the
/// same time, so snapshots of one order must arrive in the order of the file.
#[derive(Default)]
struct InFlightBatches(RefCell<Vec<InFlightBatch>>);

struct InFlightBatch {
    number: u64,
    orders: HashSet<String>,
    finished: CancellationToken,
}

impl InFlightBatches {
    /// Adds a batch and returns the earlier batches that it must wait for.
    fn add(&self, batch: &Batch) -> Vec<CancellationToken> {
        let orders = batch.orders.iter().map(|order| order.identifier.clone()).collect();
        let mut batches = self.0.borrow_mut();
        let overlapping = batches.iter().filter(|earlier| !earlier.orders.is_disjoint(&orders));
        let predecessors = overlapping.map(|earlier| earlier.finished.clone()).collect();
        let finished = CancellationToken::new();
        batches.push(InFlightBatch { number: batch.number, orders, finished });
        predecessors
    }

    fn remove(&self, number: u64) {
        for batch in self.0.borrow_mut().extract_if(.., |batch| batch.number == number) {
            batch.finished.cancel();
        }
    }
}

/// Separates the orders that the errors concern from the others.
fn split_rejected(
    orders: Vec<ValidOrder>,
    errors: &[FieldError],
) -> (Vec<ValidOrder>, Vec<Rejection>) {
    let mut by_order: BTreeMap<usize, Vec<FieldError>> = BTreeMap::new();
    for (index, error) in errors.iter().filter_map(order_error) {
        by_order.entry(index).or_default().push(error);
    }
    let names_no_order = !(0..orders.len()).any(|index| by_order.contains_key(&index));
    let mut valid = Vec::new();
    let mut rejected = Vec::new();
    for (index, order) in orders.into_iter().enumerate() {
        match by_order.remove(&index) {
            Some(errors) => rejected.push(rejection(order, errors)),
            // Otherwise the same message would be sent forever.
            None if names_no_order => rejected.push(rejection(order, errors.to_vec())),
            None => valid.push(order),
        }
    }
    (valid, rejected)
}

/// Halves a message, or rejects the single order that is too large.
fn split_in_half(
    mut orders: Vec<ValidOrder>,
) -> Result<(Vec<ValidOrder>, Vec<ValidOrder>), Option<Rejection>> {
    if orders.len() < 2 {
        let too_large = || vec![order_is_invalid("larger than the order intake accepts")];
        return Err(orders.pop().map(|order| rejection(order, too_large())));
    }
    let second = orders.split_off(orders.len() / 2);
    Ok((orders, second))
}

fn rejection(order: ValidOrder, mut errors: Vec<FieldError>) -> Rejection {
    if errors.is_empty() {
        errors.push(order_is_invalid("rejected without a reason"));
    }
    Rejection { line: order.line, order: order.identifier, errors }
}
