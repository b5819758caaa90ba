//! The state of a label request.

use strum::VariantArray as _;

crate::words! {
    /// The state of a label request.
    pub enum LabelState as "snake_case" {
        /// The provider has not responded yet.
        Requested,
        /// The provider makes the label later.
        Accepted,
        /// The provider made the label.
        Bought,
        /// The provider cannot make the label, or made one that cannot be used.
        Refused,
        /// The label is not needed any more.
        Canceled,
        /// The label expired before the parcel was handed over.
        Expired,
    }
}

impl LabelState {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Whether the provider still has to make the label.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Accepted)
    }

    /// Whether the parcel has a label, or waits for one. A parcel has at most one such request.
    pub fn is_live(self) -> bool {
        self.is_open() || self == Self::Bought
    }
}
