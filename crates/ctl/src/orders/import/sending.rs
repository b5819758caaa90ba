//! Batches on their way to the intake, several at once, and what it says of them.

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
use crate::orders::batch::{Batch, Sendable, message};
use crate::orders::check::{place_of, whole_order};
use crate::orders::gateway::{Parts, Verdict};
use crate::orders::report::Rejection;

/// A batch that is dealt with.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) number: u64,
    pub(super) end: u64,
    pub(super) outcomes: Vec<OrderOutcome>,
    pub(super) rejected: Vec<Rejection>,
}

impl Importer {
    /// Reads and checks on a thread of its own, and sends several batches at once, but none while
    /// one before it that names the same order has no answer. Where the file
    /// cannot be read any further, what was read before is dealt with first.
    pub(super) fn send_all(
        &self,
        batches: impl Iterator<Item = io::Result<Batch>> + Send + 'static,
        interrupted: watch::Receiver<bool>,
    ) -> LocalBoxStream<'_, anyhow::Result<Finished>> {
        let (gathered, waiting) = mpsc::channel(self.parallel);
        std::thread::spawn(move || {
            for batch in batches {
                let is_last = batch.is_err();
                if gathered.blocking_send(Some(batch)).is_err() || is_last {
                    return;
                }
            }
            drop(gathered.blocking_send(None));
        });
        let batches =
            stream::unfold((waiting, interrupted), |(mut waiting, mut interrupted)| async {
                let batch = tokio::select! {
                    biased;
                    Ok(_) = interrupted.wait_for(|interrupted| *interrupted) => None,
                    // One that ends without a word did not get to the end of the file.
                    batch = waiting.recv() => batch.unwrap_or_else(|| Some(Err(broke_off()))),
                };
                batch.map(|batch| (batch, (waiting, interrupted)))
            });
        let broken = Rc::new(Cell::new(None));
        let noted = broken.clone();
        let sound = batches.scan((), move |(), batch| {
            future::ready(batch.map_err(|error| noted.set(Some(error))).ok())
        });
        let under_way = Rc::new(UnderWay::default());
        let finished = sound.map(move |batch| {
            let (under_way, number) = (under_way.clone(), batch.number);
            let before = under_way.enter(&batch);
            async move {
                for earlier in before {
                    earlier.cancelled().await;
                }
                let finished = self.deal_with(batch).await;
                under_way.leave(number);
                finished
            }
        });
        let broken = stream::once(async move { broken.take().map(|error| Err(error.into())) });
        finished.buffer_unordered(self.parallel).chain(broken.flat_map(stream::iter)).boxed_local()
    }

    async fn deal_with(&self, batch: Batch) -> anyhow::Result<Finished> {
        let Batch { number, end, orders, mut rejected } = batch;
        let mut outcomes = Vec::with_capacity(orders.len());
        let mut left = vec![orders];
        while let Some(orders) = left.pop() {
            if orders.is_empty() {
                continue;
            }
            let parts = if orders.len() > 1 { Parts::Several } else { Parts::One };
            let message = message(orders.iter().map(|order| &*order.bytes));
            match self.gateway.send(&message, parts).await? {
                Verdict::Accepted(accepted) => outcomes.extend(accepted),
                Verdict::Rejected(errors) => {
                    let (kept, refused) = take_out(orders, &errors);
                    rejected.extend(refused);
                    left.push(kept);
                }
                Verdict::TooMuch => match halves(orders) {
                    Ok((first, second)) => left.extend([second, first]),
                    Err(alone) => rejected.extend(alone),
                },
            }
        }
        Ok(Finished { number, end, outcomes, rejected })
    }
}

fn broke_off() -> io::Error {
    io::Error::other("reading it broke off: this is a fault of this program")
}

/// The batches under way and the orders they name. Of two snapshots of the same moment the intake
/// keeps the one that came later, so they must come as they stand in the file.
#[derive(Default)]
struct UnderWay(RefCell<Vec<Sent>>);

struct Sent {
    number: u64,
    orders: HashSet<String>,
    answered: CancellationToken,
}

impl UnderWay {
    /// Adds a batch, and returns those before it that it has to wait for.
    fn enter(&self, batch: &Batch) -> Vec<CancellationToken> {
        let orders = batch.orders.iter().map(|order| order.identifier.clone()).collect();
        let mut sent = self.0.borrow_mut();
        let same = sent.iter().filter(|earlier| !earlier.orders.is_disjoint(&orders));
        let before = same.map(|earlier| earlier.answered.clone()).collect();
        sent.push(Sent { number: batch.number, orders, answered: CancellationToken::new() });
        before
    }

    fn leave(&self, number: u64) {
        for batch in self.0.borrow_mut().extract_if(.., |batch| batch.number == number) {
            batch.answered.cancel();
        }
    }
}

/// Splits a message into the orders that were fine and those that were not.
fn take_out(orders: Vec<Sendable>, errors: &[FieldError]) -> (Vec<Sendable>, Vec<Rejection>) {
    let mut by_order: BTreeMap<usize, Vec<FieldError>> = BTreeMap::new();
    for (index, error) in errors.iter().filter_map(place_of) {
        by_order.entry(index).or_default().push(error);
    }
    let blames_none = !(0..orders.len()).any(|index| by_order.contains_key(&index));
    let (mut kept, mut rejected) = (Vec::new(), Vec::new());
    for (index, order) in orders.into_iter().enumerate() {
        match by_order.remove(&index) {
            Some(errors) => rejected.push(rejection(order, errors)),
            // Without this a message that is refused as a whole would be sent for ever.
            None if blames_none => rejected.push(rejection(order, errors.to_vec())),
            None => kept.push(order),
        }
    }
    (kept, rejected)
}

/// Two smaller messages, or the order that is too large by itself.
fn halves(mut orders: Vec<Sendable>) -> Result<(Vec<Sendable>, Vec<Sendable>), Option<Rejection>> {
    if orders.len() < 2 {
        let too_large = || vec![whole_order("larger than the intake accepts")];
        return Err(orders.pop().map(|order| rejection(order, too_large())));
    }
    let second = orders.split_off(orders.len() / 2);
    Ok((orders, second))
}

fn rejection(order: Sendable, mut errors: Vec<FieldError>) -> Rejection {
    if errors.is_empty() {
        errors.push(whole_order("rejected without a reason"));
    }
    Rejection { line: order.line, order: order.identifier, errors }
}
