//! Every query on the tables of `migrations/delivery`.
//!
//! Invariant: a message is either in `deliveries`, or one of its attempts settled it. A single
//! transaction moves it from one to the other. The functions here open no transactions; callers do.
//!
//! See docs/decisions/delivery-log.md.

mod append;
mod dead_letters;
mod dispatch;
mod endpoints;
mod erase;
mod history;
mod log_attempts;
mod oldest_due;
mod ordering_key;
mod partitions;
mod replays;
mod schema;
mod settle;
#[cfg(test)]
mod tests;

use platform::{Timestamp, database::DatabaseError};
use uuid::Uuid;

pub use append::{NewDelivery, NewMessage, lock_free_counter};
pub(crate) use append::{append, append_new, lock_free_counters, new_ids};
pub(crate) use dead_letters::{oldest_kept, outdated_dead_letters};
pub(crate) use dispatch::claim::{
    ClaimParams, ClaimableEndpoint, ClaimedBatch, Content, DueDelivery, claim_due,
};
pub(crate) use dispatch::due::{DueEndpoint, due_endpoints, endpoints_after, take_wake_ups};
pub(crate) use dispatch::leases::{
    LeasedDelivery, Queued, expire_leases, leased, release_claim, still_queued,
};
pub(crate) use dispatch::retry::{UnsettledDelivery, retry_now, unsettled};
pub(crate) use dispatch::unblock::{BlockedCursor, unblock_first_deliveries};
pub(crate) use endpoints::details::{EndpointDetails, endpoint_details};
pub(crate) use endpoints::health::EndpointHealth;
pub(crate) use endpoints::latencies::{
    EndpointBucket, HourBucket, endpoint_latencies, hourly_latencies, recent_latencies,
};
pub(crate) use endpoints::reports::{
    HealthChange, report_failures, report_recoveries, unreported_failures, unreported_recoveries,
};
pub(crate) use endpoints::samples::{
    SampleRequest, insert_sample_request, newest_sample_requests, record_samples,
};
pub(crate) use endpoints::states::{
    EndpointKey, EndpointResults, endpoint_results, failing_endpoints, worst_endpoints,
};
pub(crate) use endpoints::windows::Windows;
pub use erase::ErasedMessages;
pub(crate) use erase::erase;
pub(crate) use history::attempts::{AttemptRow, attempts, first_attempts};
pub(crate) use history::matches::{MatchCounts, match_counts};
pub(crate) use history::messages::{StoredMessage, messages_between};
pub(crate) use history::report::{MAX_READ, Period, ReportFilter, ReportRow, report};
pub(crate) use history::scan::{Scan, list, oldest_first};
pub use history::search::state_of;
pub(crate) use history::search::{DeliveryRow, IdOrder, body, find};
pub(crate) use oldest_due::{OldestDue, oldest_due, oldest_due_seconds};
pub(crate) use partitions::{Partitions, is_partition_missing, min_id_at};
pub(crate) use replays::advance::advance_replay;
pub(crate) use replays::make_ready::{
    Superseded, delete_settled, make_settled_ready, replay_number,
};
pub(crate) use replays::recovery::{RecoveryReplay, start_recovery};
pub(crate) use replays::replay::{
    Replay, change_replay_state, find_replay, insert_replay, newest_replays, next_due_replay,
};
pub(crate) use settle::{Settled, settle};

/// Creates a UUID of version 7: ids sort by time, and a day is a range of ids.
pub(crate) fn new_id(now: Timestamp) -> Uuid {
    let seconds = u64::try_from(now.timestamp()).unwrap_or_default();
    let context = uuid::NoContext;
    Uuid::new_v7(uuid::Timestamp::from_unix(context, seconds, now.timestamp_subsec_nanos()))
}

/// Wraps the error of a stored value that this version of the program cannot parse.
pub(crate) fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> DatabaseError {
    diesel::result::Error::DeserializationError(Box::new(error)).into()
}
