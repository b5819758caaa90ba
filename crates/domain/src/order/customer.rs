//! The shopper. The merchant knows them by an identifier, and if by nothing else, by e-mail.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::WORD;
use crate::json::{Object, object, text};

/// The other key under which the shopper may arrive: the published field list says this.
pub const CUSTOMER_ALIAS: &str = "the service";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Customer {
    /// Defaults to the e-mail address.
    #[schema(required = false, nullable, max_length = 255)]
    pub identifier: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub first_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub last_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 255)]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 64)]
    pub phone: Option<String>,
}

/// Reads the shopper of an order from whichever of the two keys is used.
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
    /// The shopper's address, which a merchant may send as the identifier and nowhere else.
    pub fn email_address(&self) -> Option<&str> {
        let identifier = || Some(self.identifier.as_str()).filter(|it| it.contains('@'));
        self.email.as_deref().or_else(identifier)
    }

    fn read(customer: &Object<'_>) -> Option<Self> {
        let identifier = customer.optional("identifier", text(WORD));
        let first_name = customer.optional("first_name", text(WORD));
        let last_name = customer.optional("last_name", text(WORD));
        let email = customer.optional("email", text(WORD));
        let phone = customer.optional("phone", text(0..=64));

        let (identifier, email) = (identifier?, email?);
        let known_by = [&identifier, &email].into_iter().flatten().find(|name| !name.is_empty());
        let Some(identifier) = known_by.cloned() else {
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
