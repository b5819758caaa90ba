//! Requests to create and change people.
//!
//! A manager is an operator, or a person or client of one merchant that may manage it.

use domain::{
    access::MerchantId,
    json::{Code, Field, FieldError, Object, parsed, printable_text, read_fields, variant},
};
use utoipa::ToSchema;

use crate::{
    email::{self, Email},
    error::Error,
    roles::Role,
    store::people::Person,
};

const NO_MERCHANT: &str = "must be null, because the role belongs to no merchant";

/// The sender of a request about other people.
pub(crate) struct Manager<'a> {
    pub(crate) actor: &'a str,
    /// The merchant to which the request is limited.
    pub(crate) merchant: Option<&'a MerchantId>,
    pub(crate) is_operator: bool,
}

impl Manager<'_> {
    /// Another merchant's person gets the same error as a person that does not exist.
    pub(crate) fn check(&self, person: &Person) -> Result<(), Error> {
        match self.merchant {
            Some(own) if person.merchant.as_ref() != Some(own) => {
                Err(Error::PersonNotFound(person.email.to_string()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn check_merchant(&self, merchant: Option<&MerchantId>) -> Result<(), Error> {
        match (self.merchant, merchant) {
            (Some(own), Some(other)) if own != other => {
                Err(Error::MerchantNotFound(other.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Reads a role that the manager may give.
    fn read_role(&self, field: Field<'_>) -> Option<Role> {
        let role: Role = variant(field)?;
        if !self.is_operator && !role.is_of_merchant() {
            return field.invalid("must be merchant-admin or merchant-viewer");
        }
        Some(role)
    }
}

/// A person to be invited.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InvitePersonRequest)]
pub(crate) struct NewPerson {
    #[schema(value_type = String, min_length = 1, max_length = 254, example = "ada@acme.example")]
    pub(crate) email: Email,
    /// The default is the e-mail address.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200)]
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Required for the merchant roles, and only for them. The default is the merchant of the token.
    #[schema(value_type = Option<String>, pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    pub(crate) merchant: Option<MerchantId>,
}

impl NewPerson {
    /// The default of `merchant` is the merchant of the manager, that of `name` is the e-mail address.
    pub(crate) fn read(body: &Object<'_>, manager: &Manager<'_>) -> Option<Self> {
        body.reject_unknown(&["email", "name", "role", "merchant"]);
        let email = body.required("email", parsed(1..=email::MAX_LENGTH, str::parse::<Email>));
        let name = body.optional("name", printable_text(1..=200));
        let role = body.required("role", |field| manager.read_role(field));
        let merchant = body.optional("merchant", parsed(1..=63, str::parse::<MerchantId>));
        let email = email?;
        let name = name?;
        let role = role?;
        let mut merchant = merchant?;
        if role.is_of_merchant() && merchant.is_none() {
            merchant = manager.merchant.cloned();
        }
        match (role.is_of_merchant(), &merchant) {
            (true, None) => {
                body.missing("merchant");
                return None;
            }
            (false, Some(_)) => {
                body.invalid("merchant", NO_MERCHANT);
                return None;
            }
            _ => {}
        }
        Some(Self { name: name.unwrap_or_else(|| email.to_string()), email, role, merchant })
    }
}

/// A change of a person. Omitted values stay as they are.
#[derive(Clone, Default, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = UpdatePersonRequest)]
pub(crate) struct PersonChange {
    #[schema(min_length = 1, max_length = 200)]
    pub(crate) name: Option<String>,
    pub(crate) role: Option<Role>,
    /// A role that belongs to no merchant clears it.
    #[schema(value_type = Option<String>, pattern = "^[a-z0-9][a-z0-9-]{0,62}$")]
    pub(crate) merchant: Option<Option<MerchantId>>,
}

impl PersonChange {
    pub(crate) fn read(body: &Object<'_>, manager: &Manager<'_>) -> Option<Self> {
        read_fields!(body => Self {
            name: body.optional("name", printable_text(1..=200)),
            role: body.optional("role", |field| manager.read_role(field)),
            merchant: body.clearable("merchant", parsed(1..=63, str::parse::<MerchantId>)),
        })
    }

    /// A role that belongs to no merchant clears the merchant.
    pub(crate) fn apply(self, person: &mut Person) -> Result<(), FieldError> {
        let role = self.role.unwrap_or(person.role);
        let kept = person.merchant.clone().filter(|_| role.is_of_merchant());
        let merchant = self.merchant.unwrap_or(kept);
        match (role.is_of_merchant(), &merchant) {
            (true, None) => {
                let field = "$.merchant".to_owned();
                return Err(FieldError { field, code: Code::MissingField, detail: None });
            }
            (false, Some(_)) => return Err(FieldError::invalid("$.merchant", NO_MERCHANT)),
            _ => {}
        }
        person.name = self.name.unwrap_or_else(|| person.name.clone());
        (person.role, person.merchant) = (role, merchant);
        Ok(())
    }
}
