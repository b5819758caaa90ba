//! Where an order was sent and who paid for it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WORD;
use crate::json::{Object, parsed, text};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Address {
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    #[schema(min_length = 1, max_length = 255)]
    pub street1: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub street2: Option<String>,
    #[schema(min_length = 1, max_length = 255)]
    pub city: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub state: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 32)]
    pub zip_code: Option<String>,
    /// ISO 3166-1, two or three letters.
    #[schema(pattern = "^[A-Za-z]{2,3}$")]
    pub country_code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub phone: Option<String>,
}

impl Address {
    pub(super) fn read(address: &Object<'_>) -> Option<Self> {
        let name = address.required("name", text(1..=255));
        let street1 = address.required("street1", text(1..=255));
        let street2 = address.optional("street2", text(WORD));
        let city = address.required("city", text(1..=255));
        let state = address.optional("state", text(WORD));
        let zip_code = address.optional("zip_code", text(0..=32));
        let country_code = address.required("country_code", parsed(2..=3, country));
        let phone = address.optional("phone", text(0..=64));
        Some(Self {
            name: name?,
            street1: street1?,
            street2: street2?,
            city: city?,
            state: state?,
            zip_code: zip_code?,
            country_code: country_code?,
            phone: phone?,
        })
    }
}

fn country(code: &str) -> Result<String, &'static str> {
    if code.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        Ok(code.to_owned())
    } else {
        Err("must be an ISO 3166-1 country code, like US")
    }
}
