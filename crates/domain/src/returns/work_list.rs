//! The work list of a return: the next step that it needs.

use strum::VariantArray;

crate::words! {
    /// The next step that a return needs. The variants of open returns are in the order of their steps.
    pub enum WorkList as "snake_case" {
        /// The merchant approves or declines the return.
        ToReview,
        /// The shopper hands over the units.
        NotSent,
        /// A carrier has units, or the warehouse has not received them yet.
        OnItsWay,
        /// The merchant refunds units that came back, or that the shopper keeps.
        ToRefund,
        /// Nothing is left to do: the return is refunded, canceled or declined.
        Done,
    }
}

impl WorkList {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
