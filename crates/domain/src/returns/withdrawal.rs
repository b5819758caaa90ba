//! A withdrawal from the contract.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::email::email;
use crate::json::{Object, parsed, printable_text, read_fields};

/// The person who withdraws from the contract, as the acknowledgement names them (Directive (EU) 2023/2673).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Withdrawal {
    #[schema(min_length = 1, max_length = 255, example = "Mia Moreau")]
    pub name: String,
    /// The contact that the person gave, which need not be the address of the order.
    #[schema(min_length = 3, max_length = 255, example = "mia@shopper.example")]
    pub email: String,
}

impl Withdrawal {
    pub(super) fn read(person: &Object<'_>) -> Option<Self> {
        read_fields!(person => Self {
            name: person.required("name", printable_text(1..=255)),
            email: person.required("email", parsed(3..=255, email)),
        })
    }
}
