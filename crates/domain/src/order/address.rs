//! A shipping or billing address.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::limits::{IDENTIFIER, OPTIONAL_TEXT};
use crate::json::{Object, parsed, read_fields, text};

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Address {
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    #[schema(min_length = 1, max_length = 255)]
    pub street1: String,
    #[schema(max_length = 255)]
    pub street2: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub city: String,
    #[schema(max_length = 255)]
    pub state: Option<String>,
    #[schema(max_length = 32)]
    pub zip_code: Option<String>,
    /// ISO 3166-1 code of two or three letters.
    #[schema(pattern = "^[A-Za-z]{2,3}$")]
    pub country_code: String,
    #[schema(max_length = 64)]
    pub phone: Option<String>,
}

impl Address {
    pub(super) fn read(address: &Object<'_>) -> Option<Self> {
        read_fields!(Self {
            name: address.required("name", text(IDENTIFIER)),
            street1: address.required("street1", text(IDENTIFIER)),
            street2: address.optional("street2", text(OPTIONAL_TEXT)),
            city: address.required("city", text(IDENTIFIER)),
            state: address.optional("state", text(OPTIONAL_TEXT)),
            zip_code: address.optional("zip_code", text(0..=32)),
            country_code: address.required("country_code", parsed(2..=3, country_code)),
            phone: address.optional("phone", text(0..=64)),
        })
    }
}

/// Checks an ISO 3166-1 code of two or three letters.
pub(crate) fn country_code(code: &str) -> Result<String, &'static str> {
    if code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        Ok(code.to_owned())
    } else {
        Err("must be an ISO 3166-1 country code, like US")
    }
}
