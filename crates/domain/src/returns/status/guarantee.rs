//! The state of the guarantee that an exchanged unit comes back.

crate::words! {
    /// The state of an exchanged unit whose exchange order was accepted.
    pub enum GuaranteeState as "snake_case" {
        /// No carrier and no warehouse has the unit yet, and the deadline has not passed.
        Open,
        /// A carrier or the warehouse has or had the unit, or a refund covers it.
        Met,
        /// The unit did not come back in time, and the merchant can charge the amount.
        Due,
        /// The merchant does without the unit and the amount.
        Waived,
    }
}

impl GuaranteeState {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
