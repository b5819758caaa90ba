//! The errors of this service, each with its [`ErrorKind`].

use domain::{
    access::MerchantId,
    merchant::{Interface, UnknownInterface},
};
use platform::{ErrorKind, Failure, database::DatabaseError, sealing::SealError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no merchant {0}")]
    MerchantNotFound(String),
    #[error("merchant {0} already exists")]
    MerchantExists(MerchantId),
    #[error("there is no client {0}")]
    ClientNotFound(String),
    #[error("client {0} was revoked")]
    ClientRevoked(String),
    #[error("the secret of client {0} is a setting: change bootstrap.client_secret and restart")]
    SecretIsSetting(String),
    #[error(transparent)]
    UnknownInterface(#[from] UnknownInterface),
    #[error("merchant {0} has no endpoint for {1}")]
    EndpointNotFound(MerchantId, Interface),
    #[error("merchant {0} has no base_url: set it, or give the endpoint a url")]
    NoBaseUrl(MerchantId),
    #[error("requests to {0} are not signed, so there is no secret to rotate")]
    NotSigned(Interface),
    #[error("encryption of a secret failed")]
    Sealing(#[from] SealError),
    #[error("signing key is invalid")]
    SigningKey(#[from] jsonwebtoken::errors::Error),
    #[error("random number generator failed")]
    Random(#[from] aws_lc_rs::error::Unspecified),
    #[error("JSON conversion failed")]
    Json(#[from] serde_json::Error),
    #[error("database")]
    Database(#[from] DatabaseError),
}

impl From<diesel::result::Error> for Error {
    fn from(error: diesel::result::Error) -> Self {
        DatabaseError::from(error).into()
    }
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::MerchantNotFound(_)
            | Self::ClientNotFound(_)
            | Self::UnknownInterface(_)
            | Self::EndpointNotFound(..) => ErrorKind::Missing,
            Self::MerchantExists(_)
            | Self::ClientRevoked(_)
            | Self::SecretIsSetting(_)
            | Self::NoBaseUrl(_) => ErrorKind::Conflict,
            Self::NotSigned(_) => ErrorKind::Invalid,
            Self::Sealing(_) | Self::SigningKey(_) | Self::Random(_) | Self::Json(_) => {
                ErrorKind::Internal
            }
            Self::Database(error) => error.kind(),
        }
    }
}
