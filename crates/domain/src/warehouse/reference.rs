//! Words that several messages share.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::identifier::{Identifier, identifier};
use crate::json::{Object, one_of};

/// What state a unit is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Condition {
    N,
    A,
    R,
    B,
    #[serde(rename = "TT")]
    Tt,
    C,
    X,
}

impl Condition {
    pub(super) const WORDS: [(&str, Self); 7] = [
        ("N", Self::N),
        ("A", Self::A),
        ("R", Self::R),
        ("B", Self::B),
        ("TT", Self::Tt),
        ("C", Self::C),
        ("X", Self::X),
    ];

    pub fn as_str(self) -> &'static str {
        Self::WORDS.iter().find(|(_, it)| *it == self).map_or("", |(word, _)| word)
    }
}

/// What a carton or a unit belongs to, as the inbound ASN named it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reference {
    #[serde(rename = "type")]
    pub kind: ReferenceType,
    pub identifier: Identifier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternate_identifier: Option<Identifier>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum ReferenceType {
    StockTransferOrder,
    #[serde(rename = "RA")]
    Ra,
    #[serde(rename = "RMA")]
    Rma,
    ForwardOrder,
    ReturnsPortalOrder,
}

impl ReferenceType {
    const WORDS: [(&str, Self); 5] = [
        ("StockTransferOrder", Self::StockTransferOrder),
        ("RA", Self::Ra),
        ("RMA", Self::Rma),
        ("ForwardOrder", Self::ForwardOrder),
        ("ReturnsPortalOrder", Self::ReturnsPortalOrder),
    ];
}

impl Reference {
    pub(super) fn read(reference: &Object<'_>) -> Option<Self> {
        let kind = reference.required("type", one_of(&ReferenceType::WORDS));
        let own = reference.required("identifier", identifier);
        let alternate_identifier = reference.optional("alternate_identifier", identifier);
        Some(Self { kind: kind?, identifier: own?, alternate_identifier: alternate_identifier? })
    }
}
