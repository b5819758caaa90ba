//! The condition on which a batch is written.

/// The condition on which a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Nothing was loaded. The statement first checks that every order is new or newer.
    Optimistic,
    /// The batch was decided on loaded rows, which must not have changed.
    Checked,
}
