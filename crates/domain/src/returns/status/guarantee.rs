//! The state of the guarantee that an exchanged unit comes back.

crate::words! {
    /// The state of an exchanged unit that was replaced before it came back.
    pub enum GuaranteeState as "snake_case" {
        /// The unit is on its way, or still with the shopper.
        Open,
        /// A carrier or the warehouse has the unit, or a refund covers it.
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
