//! Orders as this service knows them, and their units that can be returned.

pub(crate) mod returnable;
pub(crate) mod units;
pub(crate) mod view;
