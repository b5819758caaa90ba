//! The shopper. A shopper without an identifier is identified by the e-mail address.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use utoipa::ToSchema;

use super::limits::OPTIONAL_TEXT;
use crate::json::{Object, object, text};

/// The other key of the shopper. The published field list has this name.
pub const CUSTOMER_ALIAS: &str = "the service";

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Customer {
    /// Defaults to the e-mail address.
    #[schema(required = false, nullable, max_length = 255)]
    pub identifier: String,
    #[schema(max_length = 255)]
    pub first_name: Option<String>,
    #[schema(max_length = 255)]
    pub last_name: Option<String>,
    #[schema(max_length = 255)]
    pub email: Option<String>,
    #[schema(max_length = 64)]
    pub phone: Option<String>,
}

/// Reads the shopper from one of the two keys.
pub(super) fn read_either(order: &Object<'_>) -> Option<Customer> {
    if order.has(CUSTOMER_ALIAS) {
        if !order.has("customer") {
            return order.required(CUSTOMER_ALIAS, object(Customer::read));
        }
        order.invalid(CUSTOMER_ALIAS, "says the same as customer: send one of the two");
    }
    order.required("customer", object(Customer::read))
}

impl Customer {
    /// The e-mail address, which some merchants send only as the identifier, without surrounding spaces.
    pub fn email_address(&self) -> Option<&str> {
        let identifier = || Some(self.identifier.as_str()).filter(|text| text.contains('@'));
        self.email.as_deref().or_else(identifier).map(str::trim)
    }

    fn read(customer: &Object<'_>) -> Option<Self> {
        let identifier = customer.optional("identifier", text(OPTIONAL_TEXT));
        let first_name = customer.optional("first_name", text(OPTIONAL_TEXT));
        let last_name = customer.optional("last_name", text(OPTIONAL_TEXT));
        let email = customer.optional("email", text(OPTIONAL_TEXT));
        let phone = customer.optional("phone", text(0..=64));

        let identifier = identifier?;
        let email = email?;
        let texts = [&identifier, &email].into_iter().flatten();
        let Some(identifier) = texts.into_iter().find(|text| !text.is_empty()).cloned() else {
            customer.missing("identifier");
            return None;
        };
        Some(Self {
            identifier,
            first_name: first_name?,
            last_name: last_name?,
            email: email.filter(|email| !email.is_empty()),
            phone: phone?,
        })
    }
}
