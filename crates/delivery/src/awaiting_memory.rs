//! Messages wait here for memory, which all kinds of a process share.

use std::collections::VecDeque;

use futures_util::future::{BoxFuture, FutureExt as _};
use messaging::Incoming;
use platform::{MemoryBudget, MemoryPermit};

/// Memory of a message in flight besides its body: task, connection buffers, response.
const OVERHEAD_BYTES: usize = 16 * 1024;

/// Memory of a message in flight.
pub(crate) fn message_bytes(body_bytes: usize) -> usize {
    body_bytes + OVERHEAD_BYTES
}

/// Messages that were received and wait for memory.
pub(crate) struct MessagesAwaitingMemory {
    budget: MemoryBudget,
    messages: VecDeque<Incoming>,
    /// Kept between calls, so that a large message keeps its place among those that wait for memory.
    acquiring: Option<BoxFuture<'static, MemoryPermit>>,
}

impl MessagesAwaitingMemory {
    pub(crate) fn new(budget: MemoryBudget) -> Self {
        Self { budget, messages: VecDeque::new(), acquiring: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn push(&mut self, messages: Vec<Incoming>) {
        self.messages.extend(messages);
    }

    pub(crate) fn take_all(&mut self) -> VecDeque<Incoming> {
        self.acquiring = None;
        std::mem::take(&mut self.messages)
    }

    /// Waits until there is memory for the first message, then takes as many more as fit, up to
    /// `max`. Cancel-safe.
    pub(crate) async fn admit(&mut self, max: usize) -> Vec<(Incoming, MemoryPermit)> {
        let Some(first) = self.messages.front() else { return Vec::new() };
        let bytes = message_bytes(first.body.len());
        let budget = &self.budget;
        let permit = self.acquiring.get_or_insert_with(|| acquire(budget.clone(), bytes)).await;
        self.acquiring = None;
        let mut admitted: Vec<_> =
            self.messages.pop_front().map(|first| (first, permit)).into_iter().collect();
        while admitted.len() < max
            && let Some(next) = self.messages.front()
            && let Ok(permit) = self.budget.try_acquire(message_bytes(next.body.len()))
        {
            admitted.extend(self.messages.pop_front().map(|next| (next, permit)));
        }
        admitted
    }
}

fn acquire(budget: MemoryBudget, bytes: usize) -> BoxFuture<'static, MemoryPermit> {
    async move { budget.acquire(bytes).await }.boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::task::JoinSet;

    use super::*;

    const MIB: usize = 1024 * 1024;

    fn message(bytes: usize) -> Incoming {
        Incoming {
            delivery_tag: 1,
            redelivered: false,
            delivery_count: 0,
            headers: Vec::new(),
            body: vec![0; bytes],
        }
    }

    /// Sends messages of these sizes to a slow endpoint. Returns the number sent and the largest
    /// number of bytes in flight.
    async fn send_all(max_bytes: usize, sizes: &[usize]) -> (usize, usize) {
        let mut waiting = MessagesAwaitingMemory::new(MemoryBudget::new(max_bytes));
        let (in_flight, mut most) = (Arc::new(AtomicUsize::new(0)), 0);
        let mut attempts = JoinSet::new();
        for batch in sizes.chunks(2) {
            waiting.push(batch.iter().map(|bytes| message(*bytes)).collect());
            while !waiting.is_empty() {
                for (message, permit) in waiting.admit(512).await {
                    let bytes = message.body.len();
                    most = most.max(in_flight.fetch_add(bytes, Ordering::Relaxed) + bytes);
                    let in_flight = in_flight.clone();
                    attempts.spawn(async move {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        in_flight.fetch_sub(message.body.len(), Ordering::Relaxed);
                        drop((message, permit));
                    });
                }
            }
        }
        (attempts.join_all().await.len(), most)
    }

    #[tokio::test(start_paused = true)]
    async fn large_messages_in_flight_stay_within_the_budget() {
        let (sent, most) = send_all(64 * MIB, &[6_000_000; 64]).await;
        assert_eq!(sent, 64);
        assert!((58_000_000..=64 * MIB).contains(&most), "{most} bytes in flight");
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_larger_than_the_budget_is_sent_alone() {
        let (sent, most) = send_all(MIB, &[100_000, 3 * MIB, 100_000, 100_000]).await;
        assert_eq!((sent, most), (4, 3 * MIB));
    }

    #[tokio::test]
    async fn a_large_message_is_not_overtaken_while_it_waits() {
        let budget = MemoryBudget::new(MIB);
        let (mut small, mut large) =
            (MessagesAwaitingMemory::new(budget.clone()), MessagesAwaitingMemory::new(budget));
        small.push(vec![message(500_000), message(100), message(100)]);
        large.push(vec![message(1_030_000)]);
        let held = small.admit(1).await;
        // Each call is cancelled, but the first one keeps its place in the queue.
        assert!(large.admit(1).now_or_never().is_none());
        assert!(small.admit(1).now_or_never().is_none());
        drop(held);
        assert!(small.admit(1).now_or_never().is_none());
        let held = large.admit(1).now_or_never().unwrap();
        assert_eq!(held.len(), 1);
        drop(held);
        assert_eq!(small.admit(2).await.len(), 2);
    }
}
