//! The two ways to write a batch.

/// How a batch was decided, and so the condition on which it may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// Nothing was loaded. The statement first checks that every order is new or newer.
    Optimistic,
    /// The batch was decided on loaded rows, which must not have changed.
    Checked,
}
