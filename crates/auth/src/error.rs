//! The errors of this service, each with its [`ErrorKind`].

use std::time::Duration;

use domain::{
    access::MerchantId,
    json::{FieldError, ValidationError},
    merchant::{Interface, UnknownInterface},
};
use platform::{ErrorKind, Failure, Timestamp, database::DatabaseError, sealing::SealError};

use crate::{
    email::{Email, InvalidEmail},
    provider_error::ProviderError,
};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no merchant {0}")]
    MerchantNotFound(String),
    #[error("merchant {0} already exists")]
    MerchantExists(MerchantId),
    /// The message does not name the other merchant.
    #[error("host name {0} is already used by the portal of another merchant")]
    HostNameTaken(String),
    #[error("merchant {0} was changed since you read it: read it again")]
    MerchantChanged(MerchantId),
    #[error("there is no client {0}")]
    ClientNotFound(String),
    #[error("client {0} was revoked")]
    ClientRevoked(String),
    #[error(
        "a secret of client {client} would end now and is still in use (created at {}, last used at {}): \
         wait until the client uses a newer one, or use force",
        .created_at.format("%Y-%m-%d %H:%M:%SZ"),
        .last_used_at.format("%Y-%m-%d %H:%M:%SZ")
    )]
    SecretInUse { client: String, created_at: Timestamp, last_used_at: Timestamp },
    #[error(
        "a secret of client {client} works until {} (created at {}) and would end now: wait until then, or use \
         force",
        .expires_at.format("%Y-%m-%d %H:%M:%SZ"),
        .created_at.format("%Y-%m-%d %H:%M:%SZ")
    )]
    SecretStillValid { client: String, created_at: Timestamp, expires_at: Timestamp },
    #[error(
        "a signing secret of {interface} would end now and is still in use (created at {}, signs until {}): \
         wait until then, or use force",
        .created_at.format("%Y-%m-%d %H:%M:%SZ"),
        .expires_at.format("%Y-%m-%d %H:%M:%SZ")
    )]
    SigningSecretInUse { interface: Interface, created_at: Timestamp, expires_at: Timestamp },
    #[error(
        "the secret of client {0} is a setting: change bootstrap.client_secret (for the portal \
         bootstrap.portal_client_secret) and restart"
    )]
    SecretIsSetting(String),
    #[error(transparent)]
    UnknownInterface(#[from] UnknownInterface),
    #[error("merchant {0} has no endpoint for {1}")]
    EndpointNotFound(MerchantId, Interface),
    #[error("merchant {0} already has an endpoint for {1}")]
    EndpointExists(MerchantId, Interface),
    #[error("merchant {0} already has a warehouse {1}")]
    WarehouseExists(MerchantId, String),
    #[error("merchant {0} has no warehouse {1}")]
    WarehouseNotFound(MerchantId, String),
    /// A rule of the merchant's policy returns units to the warehouse.
    #[error("rule {2} returns units to warehouse {1} of merchant {0}: change the rule first")]
    WarehouseInUse(MerchantId, String, String),
    #[error("merchant {0} has the maximum number of warehouses")]
    TooManyWarehouses(MerchantId),
    #[error("merchant {0} has no base_url: set it, or give the endpoint a url")]
    NoBaseUrl(MerchantId),
    #[error("requests to {0} are not signed, so there is no secret to rotate")]
    NotSigned(Interface),
    #[error("there is no person {0}")]
    PersonNotFound(String),
    #[error("person {0} already exists")]
    PersonExists(Email),
    /// The message is the same for all reasons. One is that a person of another merchant or an operator has the
    /// address.
    #[error("{0} cannot be invited to this merchant: ask an operator")]
    NotInvitable(Email),
    #[error("person {0} is disabled")]
    PersonDisabled(Email),
    #[error("person {0} is the last active operator")]
    LastOperator(Email),
    #[error("person {0} has a password and no TOTP, which operators need: send a new invitation")]
    OperatorWithoutTotp(Email),
    #[error("person {0} has no TOTP, so there are no recovery codes")]
    NoTotp(Email),
    #[error("the invitation does not exist, was used or has expired")]
    InvitationNotFound,
    #[error("the invitation was already accepted, with another password")]
    InvitationAccepted,
    #[error("signing in with a password is switched off")]
    PasswordsDisabled,
    #[error(
        "passwords are switched off, so nobody can be invited: give the person a group of oidc.roles at the \
         OpenID provider"
    )]
    InvitationsDisabled,
    /// Contains the e-mail address if it belongs to a person. The message is the same for all reasons.
    #[error("the e-mail address, the password or the code is wrong")]
    SignInFailed(Option<Email>),
    #[error("there is no OpenID provider: set oidc.issuer")]
    NoOidcProvider,
    /// The message is the same for all reasons; the log has the reason.
    #[error("signing in with the OpenID provider failed: try again")]
    OidcFailed,
    /// Contains one error of `$.groups`.
    #[error("no group of the person gives a role")]
    NoRole(Vec<FieldError>),
    #[error("OpenID provider")]
    OidcProvider(#[from] ProviderError),
    #[error("the session does not exist, has ended or has expired")]
    SessionEnded,
    #[error("there is no session {0}")]
    SessionNotFound(String),
    #[error("this needs the token of a person")]
    NotAPerson,
    #[error("too many failed attempts to sign in")]
    LockedOut(Duration),
    #[error("too many passwords are being checked at once")]
    TooManyPasswords,
    #[error("there is no signing key yet")]
    NoSigningKey,
    /// A parameter of a query, and what it must be.
    #[error("{0} {1}")]
    BadQuery(&'static str, &'static str),
    #[error(transparent)]
    Invalid(#[from] ValidationError),
    #[error("stored e-mail address is invalid")]
    StoredEmail(#[from] InvalidEmail),
    #[error("password hash is invalid")]
    PasswordHash(#[from] argon2::password_hash::Error),
    #[error("work on another thread was interrupted")]
    Interrupted(#[from] tokio::task::JoinError),
    #[error("encryption of a secret failed")]
    Sealing(#[from] SealError),
    #[error("signing key is invalid")]
    SigningKey(#[from] jsonwebtoken::errors::Error),
    #[error("random number generator failed")]
    Random(#[from] aws_lc_rs::error::Unspecified),
    #[error("JSON conversion failed")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl From<FieldError> for Error {
    fn from(error: FieldError) -> Self {
        ValidationError::from(error).into()
    }
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::MerchantNotFound(_)
            | Self::ClientNotFound(_)
            | Self::PersonNotFound(_)
            | Self::InvitationNotFound
            | Self::SessionNotFound(_)
            | Self::NoOidcProvider
            | Self::UnknownInterface(_)
            | Self::WarehouseNotFound(..)
            | Self::EndpointNotFound(..) => ErrorKind::Missing,
            Self::MerchantExists(_)
            | Self::HostNameTaken(_)
            | Self::ClientRevoked(_)
            | Self::SecretIsSetting(_)
            | Self::SecretInUse { .. }
            | Self::SecretStillValid { .. }
            | Self::SigningSecretInUse { .. }
            | Self::PersonExists(_)
            | Self::NotInvitable(_)
            | Self::InvitationAccepted
            | Self::PersonDisabled(_)
            | Self::LastOperator(_)
            | Self::OperatorWithoutTotp(_)
            | Self::NoTotp(_)
            | Self::TooManyWarehouses(_)
            | Self::WarehouseInUse(..)
            | Self::NoBaseUrl(_) => ErrorKind::Conflict,
            Self::MerchantChanged(_) | Self::EndpointExists(..) | Self::WarehouseExists(..) => {
                ErrorKind::Changed
            }
            Self::SignInFailed(_) | Self::OidcFailed | Self::SessionEnded => {
                ErrorKind::Unauthenticated
            }
            Self::PasswordsDisabled
            | Self::InvitationsDisabled
            | Self::NoRole(_)
            | Self::NotAPerson => ErrorKind::Denied,
            Self::LockedOut(_) | Self::TooManyPasswords => ErrorKind::Limited,
            Self::NoSigningKey | Self::OidcProvider(_) => ErrorKind::Unavailable,
            Self::BadQuery(..) => ErrorKind::Malformed,
            Self::Invalid(_) | Self::NotSigned(_) => ErrorKind::Invalid,
            Self::Sealing(_)
            | Self::SigningKey(_)
            | Self::StoredEmail(_)
            | Self::PasswordHash(_)
            | Self::Interrupted(_)
            | Self::Random(_)
            | Self::Json(_) => ErrorKind::Internal,
            Self::Database(error) => error.kind(),
        }
    }

    fn fields(&self) -> &[FieldError] {
        match self {
            Self::Invalid(error) => error.fields(),
            Self::NoRole(fields) => fields,
            _ => &[],
        }
    }

    fn code(&self) -> Option<&'static str> {
        match self {
            Self::SecretInUse { .. }
            | Self::SecretStillValid { .. }
            | Self::SigningSecretInUse { .. } => Some("secret_in_use"),
            Self::MerchantChanged(_) => Some("changed"),
            Self::EndpointExists(..) | Self::WarehouseExists(..) => Some("exists"),
            _ => None,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::LockedOut(remaining) => Some(*remaining),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_of_the_database_names_the_limit() {
        testkit::check_database_refusals::<Error>();
    }
}
