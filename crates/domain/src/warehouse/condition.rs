//! The condition of a unit.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, IntoStaticStr)]
#[serde(rename_all = "UPPERCASE")]
#[strum(serialize_all = "UPPERCASE")]
pub enum Condition {
    N,
    A,
    R,
    B,
    Tt,
    C,
    X,
}

impl Condition {
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
