//! The bars: the limits that figures must meet.

/// A limit of one figure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bar {
    AtMost(f64),
    AtLeast(f64),
}

use Bar::{AtLeast, AtMost};

/// Figures by benchmark and name, with their bars. CPU time is in microseconds, memory in MiB.
pub(crate) const BARS: &[(&str, Bar)] = &[
    ("auth.grant.cpu", AtMost(50.0)),
    ("auth.grant.cpu_in_echoes", AtMost(6.0)),
    ("intake.cpu", AtMost(180.0)),
    ("intake.rate_ratio", AtLeast(1.2)),
    ("intake.postgres_cpu_ratio", AtMost(0.6)),
    ("intake.postgres_cpu_growth", AtMost(10.0)),
    ("import.rate_ratio", AtLeast(0.6)),
    ("import.importer_cpu", AtMost(15.0)),
    ("returns.projection.cpu", AtMost(110.0)),
    ("returns.keeps_up", AtLeast(0.9)),
    ("returns.started.cpu", AtMost(900.0)),
    ("returns.start_to_delivery.cpu", AtMost(1_600.0)),
    ("returns.start_to_delivery.per_second", AtLeast(1_200.0)),
    ("returns.carrier_event_to_delivery.cpu", AtMost(1_000.0)),
    ("returns.carrier_event_to_delivery.per_second", AtLeast(2_000.0)),
    ("variants.cached.in_direct_requests", AtMost(3.0)),
    ("variants.uncached.in_direct_requests", AtMost(8.0)),
    ("warehouse.singly.cpu", AtMost(450.0)),
    ("idle.cpu", AtMost(2.0)),
    ("idle.services_memory", AtMost(150.0)),
    ("republish.seconds", AtMost(60.0)),
    ("republish.p99_growth", AtMost(1.5)),
    ("delivery.batched.cpu", AtMost(280.0)),
    ("delivery.batched.cpu_in_bare_loops", AtMost(4.0)),
    ("delivery.one_by_one.ten_endpoints.cpu", AtMost(500.0)),
    ("delivery.one_by_one.ten_endpoints.per_second", AtLeast(3_500.0)),
    ("delivery.one_by_one.ten_endpoints.commit_to_arrival_p50", AtMost(50.0)),
    ("delivery.one_by_one.one_endpoint.cpu", AtMost(500.0)),
    ("delivery.one_by_one.one_endpoint.per_second", AtLeast(3_000.0)),
    ("delivery.one_by_one.one_endpoint.commit_to_arrival_p50", AtMost(50.0)),
    ("delivery.paced.cpu", AtMost(4_000.0)),
    ("delivery.paced.sent_to_arrival_p50", AtMost(3.5)),
    ("delivery.paced.sent_to_arrival_p99", AtMost(10.0)),
    ("delivery.history.cpu_growth", AtMost(10.0)),
    ("delivery.merchants.at_10.cpu_growth", AtMost(10.0)),
    ("delivery.merchants.at_10.p99_growth", AtMost(1.5)),
    ("delivery.merchants.at_1000.cpu_growth", AtMost(10.0)),
    ("delivery.merchants.at_1000.p99_growth", AtMost(1.5)),
    ("delivery.merchants.at_10000.cpu_growth", AtMost(10.0)),
    ("delivery.merchants.at_10000.p99_growth", AtMost(1.5)),
    ("delivery.merchants.at_100000.cpu_growth", AtMost(10.0)),
    ("delivery.merchants.at_100000.p99_growth", AtMost(1.5)),
    ("delivery.merchants.at_100000.poll_cpu", AtMost(2_000.0)),
    ("delivery.merchants.at_100000.ready", AtMost(5.0)),
    ("delivery.merchants.at_100000.memory", AtMost(256.0)),
    ("delivery.slow.respond_after_10s.rate_kept", AtLeast(0.9)),
    ("delivery.slow.respond_after_10s.p99_growth", AtMost(1.5)),
    ("delivery.slow.begin_to_hang.rate_kept", AtLeast(0.9)),
    ("delivery.slow.begin_to_hang.p99_growth", AtMost(1.5)),
];

impl Bar {
    /// The bar of a figure.
    pub(crate) fn of(figure: &str) -> Option<Self> {
        BARS.iter().find(|(name, _)| *name == figure).map(|(_, bar)| *bar)
    }

    pub(crate) fn limit(self) -> f64 {
        match self {
            Self::AtMost(limit) | Self::AtLeast(limit) => limit,
        }
    }

    pub(crate) fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}
