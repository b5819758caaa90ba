//! What can go wrong in the operator's API.

use domain::{
    access::MerchantId,
    merchant::{Interface, UnknownInterface},
};
use platform::{ErrorKind, Failure, database::DatabaseError, sealing::SealError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("there is no merchant {0}")]
    NoMerchant(String),
    #[error("there is a merchant {0} already")]
    MerchantExists(MerchantId),
    #[error("there is no client {0}")]
    NoClient(String),
    #[error("client {0} was revoked")]
    ClientRevoked(String),
    #[error("the secret of {0} is a setting: change bootstrap.client_secret and restart")]
    SecretIsSetting(String),
    #[error(transparent)]
    NoInterface(#[from] UnknownInterface),
    #[error("merchant {0} has no endpoint for {1}")]
    NoEndpoint(MerchantId, Interface),
    #[error("set the merchant's base_url first, or give the endpoint's whole url")]
    NoAddress,
    #[error("requests to {0} are not signed, so there is no secret to change")]
    NotSigned(Interface),
    #[error("sealing")]
    Sealing(#[from] SealError),
    #[error("signing keys")]
    Keys(#[from] jsonwebtoken::errors::Error),
    #[error("randomness")]
    Random(#[from] aws_lc_rs::error::Unspecified),
    #[error("a stored document cannot be read")]
    Document(#[from] serde_json::Error),
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
            Self::NoMerchant(_)
            | Self::NoClient(_)
            | Self::NoInterface(_)
            | Self::NoEndpoint(..) => ErrorKind::Missing,
            Self::MerchantExists(_)
            | Self::ClientRevoked(_)
            | Self::SecretIsSetting(_)
            | Self::NoAddress => ErrorKind::Conflict,
            Self::NotSigned(_) => ErrorKind::Invalid,
            Self::Sealing(_) | Self::Keys(_) | Self::Random(_) | Self::Document(_) => {
                ErrorKind::Internal
            }
            Self::Database(error) => error.kind(),
        }
    }
}
