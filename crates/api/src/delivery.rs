//! Deliveries, endpoints and replays, as rma-engine, exchange and warehouse-notifier show them.

mod checks;
mod deliveries;
mod endpoints;
mod replays;
mod reports;

pub use checks::{EndpointCheck, EndpointCheckResult, RefusedPart};
pub use deliveries::{
    AttemptView, DeliveryDetails, DeliveryPage, DeliveryView, HeaderView, State, Waiting,
    WaitingReason,
};
pub use endpoints::{
    EndpointPage, EndpointView, LastFailure, LastSuccess, OldestDueView, RecentAttempts,
    WorstEndpoints,
};
pub use replays::{
    DryRun, Filter, KindMatches, MatchSample, MerchantMatches, ReplayPage, ReplayState, ReplayView,
};
pub use reports::{DurationBucket, HourReport, HourlyReport};
