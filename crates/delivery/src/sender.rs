//! Takes messages of one kind off their work queue, makes the attempts, and has them settled.
//!
//! A message is acknowledged after it was settled, with two exceptions that the ledger covers: one
//! whose endpoint takes so long that it would hold up the acknowledgement of everything after it,
//! and one that this process is sending already. Should the process die, their rows are queued
//! and recalled when the lease is over. A process that is told to stop finishes its attempts and
//! gives back what it cannot finish. When the broker goes away, attempts go on and are
//! settled; the copies that come again afterwards find nothing to do.

mod copies;
mod line;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use domain::message_kind::MessageKind;
use messaging::{BrokerError, Incoming};
use platform::{chain, retry::Backoff};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::ack_tracker::{AckTracker, SLOW};
use crate::engine::{Engine, patience};
use crate::in_flight::fly;
use crate::job::Job;
use crate::ledger::Verdict;
use crate::settler::{Done, Settled, Settler, Tag};
use copies::{release_claim, take_paused, wanted};
use line::{Arrived, Line};

/// Attempts that ended are settled together: when there are this many, or this long after the first.
const TOGETHER: usize = 64;
const LINGER: Duration = Duration::from_millis(4);
/// The pauses before a dead letter is written again, the first and the longest. While the broker does
/// not take it, each try may hold up settling for as long as the broker is waited for.
const SETTLE_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(10));
/// How often it looks for messages that take long, and for what was put off.
const TICK: Duration = Duration::from_millis(250);
/// What is left to do after the last call has this long.
const LAST_WORDS: Duration = Duration::from_millis(1500);

pub(crate) struct Sender {
    engine: Arc<Engine>,
    kind: MessageKind,
    line: Line,
    /// How many subscriptions there were.
    subscriptions: u64,
    backoff: Backoff,
    flights: JoinSet<Done>,
    /// What is in the air or not settled yet, so that no second copy joins it.
    in_flight: HashMap<(Uuid, i32, i32), InFlight>,
    /// How many of them took long at the last tick.
    slow: usize,
    /// Of the current subscription.
    receipts: AckTracker,
    stop: CancellationToken,
    /// Attempts that are still under way by then are given up.
    drain_deadline: CancellationToken,
    landed: Vec<Done>,
    /// When what has landed is settled at the latest.
    settle_by: Instant,
    /// One batch at a time. A task of its own: a transaction must not wait for a sender who waits for
    /// something else.
    settling: JoinSet<Settled>,
    settler: Option<Settler>,
    /// What could not be settled and is tried again, and from when.
    put_off: Vec<Done>,
    settle_again_at: Instant,
    settle_again: Backoff,
}

/// An attempt under way.
struct InFlight {
    task: tokio::task::Id,
    since: Instant,
}

impl Sender {
    pub(crate) fn new(
        engine: Arc<Engine>,
        kind: MessageKind,
        (stop, drain_deadline): (CancellationToken, CancellationToken),
    ) -> Self {
        let settler = Some(Settler::new(engine.clone()));
        let receipts = AckTracker::new(engine.settings.prefetch.get());
        let line = Line::open(&engine, kind, Duration::ZERO);
        Self {
            engine,
            kind,
            line,
            subscriptions: 0,
            backoff: patience(),
            flights: JoinSet::new(),
            in_flight: HashMap::new(),
            slow: 0,
            receipts,
            stop,
            drain_deadline,
            landed: Vec::new(),
            settle_by: Instant::now(),
            settling: JoinSet::new(),
            settler,
            put_off: Vec::new(),
            settle_again_at: Instant::now(),
            settle_again: Backoff::new(SETTLE_AGAIN.0, SETTLE_AGAIN.1),
        }
    }

    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        if !self.engine.knows_merchants(&stop).await {
            return;
        }
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let room = self.room();
            let lingers = !self.landed.is_empty() && self.settler.is_some();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = ticks.tick() => self.look_after_slow().await,
                Some(settled) = self.settling.join_next() => self.settled(settled).await,
                Some(landed) = self.flights.join_next() => self.land_all(landed),
                () = tokio::time::sleep_until(self.settle_by), if lingers => {}
                arrived = self.line.next(room), if room > 0 => self.receive(arrived).await,
            }
            // With nothing else in the air there is nothing to wait for.
            let enough = self.landed.len() >= TOGETHER || self.flights.is_empty();
            if enough || self.settle_by <= Instant::now() {
                self.begin_settling();
            }
        }
        self.leave().await;
    }

    /// How many more attempts may set out. One that ended keeps its place until it is settled, or a
    /// slow ledger would fill the memory. One that takes long has a place of its own, as long as
    /// there are any: endpoints that hang must not take the places of those that answer.
    fn room(&self) -> usize {
        let settings = &self.engine.settings;
        let places = settings.concurrency.get() + self.slow.min(settings.slow_concurrency);
        places.saturating_sub(self.in_flight.len())
    }

    async fn look_after_slow(&mut self) {
        let now = Instant::now();
        let flights = self.in_flight.values();
        self.slow = flights.filter(|flight| now.duration_since(flight.since) >= SLOW).count();
        self.acknowledge_or_reopen().await;
    }

    /// Finishes what is in the air and settles it; nothing new is taken.
    async fn leave(mut self) {
        if let Line::Open(subscription) = &mut self.line
            && let Err(error) = subscription.cancel().await
        {
            self.reopen(&error);
        }
        let drain_deadline = self.drain_deadline.clone();
        loop {
            self.begin_settling();
            if self.settler.is_some() && self.flights.is_empty() && self.put_off.is_empty() {
                return;
            }
            let waits = self.settler.is_some() && !self.put_off.is_empty();
            tokio::select! {
                () = drain_deadline.cancelled() => break,
                () = tokio::time::sleep_until(self.settle_again_at), if waits => {}
                Some(settled) = self.settling.join_next() => self.settled(settled).await,
                Some(landed) = self.flights.join_next() => self.land_all(landed),
            }
        }
        if tokio::time::timeout(LAST_WORDS, self.give_up()).await.is_err() {
            let queue = self.kind.queue();
            tracing::warn!(queue, "what was under way comes again when its lease is over");
        }
    }

    /// Breaks off what is still in the air, settles the rest, and gives the messages back whose
    /// attempts were broken off or could not be settled: another replica need not wait for the lease.
    async fn give_up(&mut self) {
        let mut broken_off = Vec::new();
        self.flights.abort_all();
        while let Some(landed) = self.flights.join_next().await {
            match landed {
                Ok(done) => self.landed.push(done),
                Err(error) => {
                    let mut flights = self.in_flight.iter();
                    let flight = flights.find(|(_, flight)| flight.task == error.id());
                    broken_off.extend(flight.map(|((id, ..), _)| *id));
                }
            }
        }
        loop {
            self.begin_settling();
            let Some(settled) = self.settling.join_next().await else { break };
            self.settled(settled).await;
        }
        broken_off.extend(self.put_off.iter().map(|done| done.settlement.id));
        // First the queue lets go of them: given back and still there, they would be sent twice.
        self.receipts.let_go();
        let let_go = matches!(self.line, Line::Open(_)) && self.acknowledge().await.is_ok();
        if let_go && !broken_off.is_empty() {
            let queue = self.kind.queue();
            tracing::warn!(queue, messages = broken_off.len(), "attempts were broken off");
            release_claim(&self.engine, &broken_off).await;
        }
    }

    async fn receive(&mut self, arrived: Result<Arrived, BrokerError>) {
        match arrived {
            Ok(Arrived::Subscribed(subscription)) => {
                self.line = Line::Open(subscription);
                self.subscriptions += 1;
                self.receipts = AckTracker::new(self.engine.settings.prefetch.get());
                self.backoff.reset();
            }
            Ok(Arrived::Messages(batch)) => {
                if let Err(error) = self.take(batch).await {
                    self.reopen(&error);
                }
            }
            Err(error) => self.reopen(&error),
        }
    }

    fn reopen(&mut self, error: &BrokerError) {
        let queue = self.kind.queue();
        tracing::warn!(queue, error = chain(error), "subscribing again");
        self.line = Line::open(&self.engine, self.kind, self.backoff.pause());
    }

    async fn take(&mut self, batch: Vec<Incoming>) -> Result<(), BrokerError> {
        let now = self.engine.clock.now();
        let (mut jobs, mut maybe_duplicate) = (Vec::with_capacity(batch.len()), Vec::new());
        for incoming in batch {
            let tag = Tag { subscription: self.subscriptions, number: incoming.delivery_tag };
            self.receipts.arrived(tag.number);
            match Job::read(self.kind, incoming, self.engine.settings.lease, now) {
                Ok(job) if job.maybe_duplicate => maybe_duplicate.push((job, tag)),
                Ok(job) => jobs.push((job, tag)),
                Err(error) => {
                    let queue = self.kind.queue();
                    tracing::error!(queue, %error, "a message cannot be read and is put aside");
                    if let Line::Open(subscription) = &self.line {
                        subscription.dead_letter(tag.number).await?;
                        self.receipts.dead_letter(tag.number);
                    }
                }
            }
        }
        if !maybe_duplicate.is_empty() {
            // The answer may be long in coming, and what is fresh now is in doubt by then.
            maybe_duplicate.append(&mut jobs);
            let tags: Vec<_> = maybe_duplicate.iter().map(|(_, tag)| tag.number).collect();
            tokio::select! {
                wanted = wanted(&self.engine, maybe_duplicate) => jobs = wanted,
                () = self.stop.cancelled() => self.return_all(&tags).await?,
            }
        }
        let paused = take_paused(&self.engine, &mut jobs);
        for (job, tag) in jobs {
            let key = (job.id, job.round, job.number);
            if !self.in_flight.contains_key(&key) {
                let (engine, since) = (self.engine.clone(), Instant::now());
                self.receipts.set_out(tag.number, since);
                let task = self.flights.spawn(async move { fly(&engine, job, tag).await }).id();
                self.in_flight.insert(key, InFlight { task, since });
            }
        }
        // Last: this too may be a wait for the ledger.
        if !paused.is_empty() {
            release_claim(&self.engine, &paused).await;
        }
        self.acknowledge().await
    }

    /// Puts messages back into their queue: another replica may know more of them.
    async fn return_all(&mut self, tags: &[u64]) -> Result<(), BrokerError> {
        if let Line::Open(subscription) = &self.line {
            for tag in tags {
                subscription.requeue(*tag).await?;
                self.receipts.dead_letter(*tag);
            }
        }
        Ok(())
    }

    /// Takes this one and whatever else is back already.
    fn land_all(&mut self, landed: Result<Done, JoinError>) {
        self.land(landed);
        while let Some(landed) = self.flights.try_join_next() {
            self.land(landed);
        }
    }

    fn land(&mut self, landed: Result<Done, JoinError>) {
        match landed {
            Ok(done) => {
                if self.landed.is_empty() {
                    self.settle_by = Instant::now() + LINGER;
                }
                self.landed.push(done);
            }
            // Its message stays unsettled: it comes again when the lease is over.
            Err(error) => {
                tracing::error!(%error, "an attempt broke off");
                self.in_flight.retain(|_, flight| flight.task != error.id());
            }
        }
    }

    fn begin_settling(&mut self) {
        if self.settle_again_at <= Instant::now() {
            self.landed.append(&mut self.put_off);
        } else if !self.put_off.is_empty() {
            let is_dead = |done: &mut Done| done.settlement.verdict == Verdict::Dead;
            self.put_off.extend(self.landed.extract_if(.., is_dead));
        }
        if self.landed.is_empty() {
            return;
        }
        if let Some(settler) = self.settler.take() {
            let most = self.engine.settings.settle_batch.get().min(self.landed.len());
            let batch = self.landed.drain(..most).collect();
            self.settling.spawn(settler.settle(batch));
        }
    }

    async fn settled(&mut self, settled: Result<Settled, JoinError>) {
        let Settled { settler, over, put_off } =
            settled.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        self.settler = Some(settler);
        if !put_off.is_empty() {
            self.put_off.extend(put_off);
            self.settle_again_at = Instant::now() + self.settle_again.pause();
        } else if self.put_off.is_empty() {
            self.settle_again.reset();
        }
        for Done { tag, settlement, .. } in &over {
            self.in_flight.remove(&(settlement.id, settlement.round, settlement.number));
            if tag.subscription == self.subscriptions {
                self.receipts.settled(tag.number);
            }
        }
        self.acknowledge_or_reopen().await;
    }

    async fn acknowledge_or_reopen(&mut self) {
        if let Err(error) = self.acknowledge().await {
            self.reopen(&error);
        }
    }

    async fn acknowledge(&mut self) -> Result<(), BrokerError> {
        match &self.line {
            Line::Open(subscription) => match self.receipts.due(Instant::now()) {
                Some(through) => subscription.ack_up_to(through).await,
                None => Ok(()),
            },
            Line::Opening(_) => Ok(()),
        }
    }
}
