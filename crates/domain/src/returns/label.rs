//! The label of a parcel.

use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use super::ReturnMethod;

/// A label for the parcel of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Label {
    #[schema(max_length = 2048)]
    pub url: String,
    pub kind: LabelKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LabelKind {
    /// The shopper prints the label.
    Printable,
    /// The carrier scans a code on the shopper's screen.
    QrCode,
}

impl Label {
    /// Accepts the URL of a label. Pages link to it, so other schemes than http and https are rejected.
    pub fn parse_url(text: &str) -> Result<String, &'static str> {
        let is_web = |url: Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        let is_accepted = Url::parse(text).is_ok_and(is_web);
        if is_accepted { Ok(text.to_owned()) } else { Err("must be an http or https URL") }
    }
}

impl LabelKind {
    /// The kind of a label that the carrier does not describe. An express drop-off needs no printer.
    pub fn usual_for(method: ReturnMethod) -> Self {
        match method {
            ReturnMethod::ExpressReturns => Self::QrCode,
            ReturnMethod::MailBack | ReturnMethod::CustomerKeep => Self::Printable,
        }
    }
}
