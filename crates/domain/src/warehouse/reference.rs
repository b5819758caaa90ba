//! The order or RMA that a carton or unit belongs to.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use strum::Display;
use utoipa::ToSchema;

use super::identifier::{Identifier, identifier};
use crate::json::{Object, read_fields, variant};

/// A reference from the inbound ASN.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reference {
    #[serde(rename = "type")]
    pub kind: ReferenceType,
    pub identifier: Identifier,
    pub alternate_identifier: Option<Identifier>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, Display)]
pub enum ReferenceType {
    StockTransferOrder,
    #[serde(rename = "RA")]
    #[strum(to_string = "RA")]
    Ra,
    #[serde(rename = "RMA")]
    #[strum(to_string = "RMA")]
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
