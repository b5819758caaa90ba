//! The size of a run.

use std::time::Duration;

/// The smallest number of items: two for each of 32 connections.
const MIN_ITEMS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Size {
    /// As the bars need it
    Full,
    /// Some seconds for each part, to see that it works; its figures mean nothing
    Small,
}

impl Size {
    pub(crate) fn items(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Small => (full / 100).max(MIN_ITEMS).min(full),
        }
    }

    pub(crate) fn rounds(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Small => 1,
        }
    }

    pub(crate) fn time(self, full: Duration) -> Duration {
        match self {
            Self::Full => full,
            Self::Small => full / 10,
        }
    }
}

/// A number of items, to compute with.
pub(crate) fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}
