//! Responses with secrets that are stored with their idempotency keys, encrypted as a whole.

use domain::merchant::Sealed;
use secrecy::ExposeSecret as _;
use serde::{Serialize, de::DeserializeOwned};

use crate::{App, error::Error};

/// Encrypts a response. The context names the one that it is about.
pub(crate) fn seal(app: &App, context: &str, response: &impl Serialize) -> Result<String, Error> {
    Ok(app.sealer.seal(context, &serde_json::to_string(response)?)?.0)
}

/// Decrypts a response that was stored with its key.
pub(crate) fn open<T: DeserializeOwned>(
    app: &App,
    context: &str,
    stored: &str,
) -> Result<T, Error> {
    let sealed = Sealed(serde_json::from_str(stored)?);
    let opened = app.sealer.open(context, &sealed)?;
    Ok(serde_json::from_str(opened.expose_secret())?)
}
