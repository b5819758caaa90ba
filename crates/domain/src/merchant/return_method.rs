//! The way in which a shopper sends units back.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};
use utoipa::ToSchema;

/// How a unit comes back.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    ToSchema,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ReturnMethod {
    /// The shopper mails a parcel with a label.
    MailBack,
    /// The shopper drops the unit off, or a carrier collects it.
    ExpressReturns,
    /// The shopper keeps the unit.
    CustomerKeep,
}

impl ReturnMethod {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
