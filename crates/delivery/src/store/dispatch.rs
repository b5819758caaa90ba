//! Deliveries on their way to the broker: due, claimed, leased, and ready again.

pub(super) mod claim;
pub(super) mod due;
pub(super) mod leases;
pub(super) mod retry;
pub(super) mod unblock;
