//! The way in which a shopper sends units back.

use strum::VariantArray as _;

crate::words! {
    /// How a unit comes back.
    pub enum ReturnMethod as "kebab-case" {
        /// The shopper mails a parcel with a label.
        MailBack,
        /// The shopper drops the unit off, or a carrier collects it.
        ExpressReturns,
        /// The shopper keeps the unit.
        CustomerKeep,
    }
}

impl ReturnMethod {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
