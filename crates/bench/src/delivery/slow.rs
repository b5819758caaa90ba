//! A hundred merchants, fifty of which become slow: the others must keep their rate and their latency from
//! the first second on. All message kinds are sent.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::message_kind::MessageKind;
use platform::{Clock, Timestamp};
use testkit::Namespace;
use uuid::Uuid;

use super::{fixture::Fixture, test_merchants, writes::WriteRequest};
use crate::{
    load::Round,
    report::Report,
    size::{Size, count},
};

/// The timeout of production, which is longer than the slow responses.
const SETTINGS: [(&str, &str); 1] = [("DELIVERY__ATTEMPT_TIMEOUT", "20s")];
const BUSY: Range<usize> = 100..150;
const OTHERS: Range<usize> = 150..200;
/// One write of each group: 16 messages per second and busy merchant, 4 per second and other merchant.
const TICK: Duration = Duration::from_millis(20);
const BUSY_PER_TICK: usize = 16;
const OTHERS_PER_TICK: usize = 4;
const PHASE: Duration = Duration::from_secs(15);
const WARM_UP: Duration = Duration::from_secs(5);
const SLOW_RESPONSE: Duration = Duration::from_secs(10);
/// Time for late messages to arrive after a phase.
const LATE: Duration = Duration::from_secs(30);

/// The messages to the other merchants in one phase.
struct Phase {
    /// By kind.
    rounds: BTreeMap<MessageKind, Round>,
    /// Arrivals within the phase, by kind.
    arrived: BTreeMap<MessageKind, usize>,
    busy_ids: Vec<Uuid>,
}

struct Written {
    id: Uuid,
    kind: MessageKind,
    committed_at: Timestamp,
}

pub(super) async fn run(report: &mut Report, size: Size) -> anyhow::Result<()> {
    let mut fixture = Fixture::start(Arc::new(Namespace::create()), &SETTINGS).await?;
    let all = BUSY.start..OTHERS.end;
    test_merchants::create(&fixture.pool, &fixture.sandbox, all, &MessageKind::ALL).await?;
    fixture.restart(&SETTINGS).await?;
    run_phase(&fixture, size.time(WARM_UP)).await?;
    let before = run_phase(&fixture, size.time(PHASE)).await?;
    before.report(report, "slow.before");

    fixture.sandbox.delay(BUSY, SLOW_RESPONSE).await?;
    let slow = run_phase(&fixture, size.time(PHASE)).await?;
    slow.report_change(report, "slow.respond_after_10s", &before);
    fixture.sandbox.reset().await?;
    fixture.await_settled(&slow.busy_ids).await?;

    let before = run_phase(&fixture, size.time(PHASE)).await?;
    fixture.sandbox.hang(BUSY).await?;
    let hanging = run_phase(&fixture, size.time(PHASE)).await?;
    hanging.report_change(report, "slow.begin_to_hang", &before);
    Ok(())
}

/// Writes messages at a fixed rate for some time, and waits for those of the other merchants.
async fn run_phase(fixture: &Fixture, duration: Duration) -> anyhow::Result<Phase> {
    let (clock, arrived) = (Clock::system(), fixture.sandbox.total().await?);
    let (mut busy_ids, mut others) = (Vec::new(), Vec::new());
    let (started, mut ticks) = (Instant::now(), tokio::time::interval(TICK));
    let mut number = 0;
    while started.elapsed() < duration {
        ticks.tick().await;
        let request = |merchants, per_tick| WriteRequest {
            all_kinds: true,
            ..WriteRequest::new(number * per_tick..(number + 1) * per_tick, merchants)
        };
        let (busy, other) = (request(BUSY, BUSY_PER_TICK), request(OTHERS, OTHERS_PER_TICK));
        let (busy, written) = tokio::try_join!(fixture.write(&busy), async {
            let written = fixture.write(&other).await?;
            let ids = written.ids.into_iter().zip(other.numbers.clone());
            let committed_at = written.committed_at;
            let written = ids.map(|(id, n)| Written { id, kind: other.kind(n), committed_at });
            anyhow::Ok(written.collect::<Vec<_>>())
        })?;
        busy_ids.extend(busy.ids);
        others.extend(written);
        number += 1;
    }
    let ended_at = clock.now();
    let ids: Vec<_> = others.iter().map(|written| written.id).collect();
    // Messages that are later than this count as arriving now.
    drop(tokio::time::timeout(LATE, fixture.await_settled(&ids)).await);
    let arrivals = fixture.arrivals(arrived).await?;
    let mut latencies = BTreeMap::<_, Vec<_>>::new();
    let mut in_phase = BTreeMap::<_, usize>::new();
    for Written { id, kind, committed_at } in others {
        let at = arrivals.get(&id).copied().unwrap_or_else(|| clock.now());
        *in_phase.entry(kind).or_default() += usize::from(at <= ended_at);
        latencies.entry(kind).or_default().push((at - committed_at).to_std().unwrap_or_default());
    }
    let rounds = latencies.into_iter().map(|(kind, times)| (kind, Round::new(times, duration)));
    Ok(Phase { rounds: rounds.collect(), arrived: in_phase, busy_ids })
}

impl Phase {
    /// The messages of all kinds.
    fn all(&self) -> Round {
        self.rounds.values().fold(Round::default(), |mut all, round| {
            all.extend(round.clone());
            all
        })
    }

    fn rate(&self, kind: MessageKind) -> f64 {
        count(self.arrived.get(&kind).copied().unwrap_or_default())
    }

    fn report(&self, report: &mut Report, name: &str) {
        report.latencies(&format!("{name}.commit_to_arrival"), &self.all());
    }

    /// Reports the kept rate of the worst kind, and the growth of the 99th percentile of all kinds together
    /// and of the worst kind.
    fn report_change(&self, report: &mut Report, name: &str, before: &Self) {
        self.report(report, name);
        let kinds = || before.rounds.iter();
        let kept = kinds().map(|(kind, _)| self.rate(*kind) / before.rate(*kind).max(1.0));
        report.figure(&format!("{name}.rate_kept"), kept.fold(1.0, f64::min), "of the rate");
        let growth = |now: &Round, before: &Round| now.millis(0.99) / before.millis(0.99);
        report.figure(&format!("{name}.p99_growth"), growth(&self.all(), &before.all()), "times");
        let worst = kinds().filter_map(|(kind, round)| Some(growth(self.rounds.get(kind)?, round)));
        let worst = worst.fold(0.0, f64::max);
        report.figure(&format!("{name}.p99_growth_of_worst_kind"), worst, "times");
    }
}
