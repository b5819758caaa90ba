//! A request that comes again with the same `Idempotency-Key` gets the same answer and changes
//! nothing.

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::json::Digest;
use platform::Timestamp;
use platform::idempotency::{HEADER, IdempotencyKey, Key, KeyState};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// A request as it is told from others.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) merchant: &'a MerchantId,
    /// A key belongs to what was asked for.
    pub(crate) operation: &'static str,
    pub(crate) key: Key,
    /// Of the body.
    pub(crate) digest: Digest,
    pub(crate) at: Timestamp,
}

impl Request<'_> {
    /// The answer given before, if there is one.
    pub(crate) async fn begin<T: DeserializeOwned>(
        &self,
        conn: &mut AsyncPgConnection,
    ) -> Result<Option<T>, Error> {
        let Some(keyed) = self.keyed() else { return Ok(None) };
        match keyed.take(conn, self.at).await? {
            KeyState::New => Ok(None),
            KeyState::Answered(answer) => Ok(Some(serde_json::from_str(&answer)?)),
            KeyState::OtherRequest => Err(keyed.misused().into()),
        }
    }

    /// Remembers the answer.
    pub(crate) async fn end(
        &self,
        conn: &mut AsyncPgConnection,
        answer: &impl Serialize,
    ) -> Result<(), Error> {
        match self.keyed() {
            Some(keyed) => Ok(keyed.answer(conn, &serde_json::to_string(answer)?).await?),
            None => Ok(()),
        }
    }

    fn keyed(&self) -> Option<IdempotencyKey<'_>> {
        let key = self.key.0.as_deref()?;
        let Self { merchant, operation, digest, .. } = *self;
        Some(IdempotencyKey { merchant, operation, key, name: HEADER, request: digest })
    }
}
