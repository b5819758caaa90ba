//! What happens in the warehouse: announced, arrived, and sent.

pub(crate) mod asns;
pub(crate) mod receipts;
pub(crate) mod shipments;

use domain::warehouse::Identifier;
use serde::Deserialize;

/// Where something comes from or goes to.
#[derive(Deserialize)]
struct Place {
    identifier: Identifier,
    #[serde(rename = "type")]
    kind: String,
}

impl Place {
    fn words(&self) -> String {
        format!("{} {}", self.kind, self.identifier)
    }
}
