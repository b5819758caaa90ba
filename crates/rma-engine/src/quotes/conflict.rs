//! The response to a request for a return that is not possible as requested.

use serde::Serialize;
use utoipa::ToSchema;

use crate::quotes::terms::{QuoteChange, QuoteTerms};
use crate::quotes::{Assessment, IneligibleUnit, Quote};

/// Why a return cannot be created as requested.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct ReturnConflict {
    pub(crate) message: String,
    /// Units that cannot be returned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) ineligible: Vec<IneligibleUnit>,
    /// Differences from the quote.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changes: Vec<QuoteChange>,
    /// The current quote.
    pub(crate) quote: Quote,
    /// Include this in support requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

impl ReturnConflict {
    /// The conflict of a request, if it has one.
    pub(crate) fn find(assessment: &Assessment, quoted: Option<&QuoteTerms>) -> Option<Self> {
        let changes = quoted.map(|quoted| quoted.changes(&assessment.terms())).unwrap_or_default();
        let ineligible = assessment.ineligible();
        let message = match (changes.is_empty(), ineligible.first()) {
            (true, None) => return None,
            (false, _) => "the quote is out of date".to_owned(),
            (true, Some(_)) => "some units cannot be returned".to_owned(),
        };
        let quote = assessment.quote();
        Some(Self { message, ineligible, changes, quote, request_id: None })
    }
}
