//! The history of messages and attempts: lists, searches and reports.

pub(super) mod attempts;
pub(super) mod candidates;
pub(super) mod matches;
pub(super) mod messages;
pub(super) mod report;
pub(super) mod scan;
pub(super) mod search;
