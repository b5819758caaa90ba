//! The order or RMA that a carton or unit belongs to.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::identifier::{Identifier, identifier};
use crate::json::{Object, read_fields, variant};

/// A reference from the inbound ASN.
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

impl Reference {
    pub(super) fn read(reference: &Object<'_>) -> Option<Self> {
        read_fields!(Self {
            kind: reference.required("type", variant),
            identifier: reference.required("identifier", identifier),
            alternate_identifier: reference.optional("alternate_identifier", identifier),
        })
    }
}
