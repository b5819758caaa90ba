//! Requests that have their effect once, however often and however parallel they are sent.

use diesel_async::AsyncPgConnection;
use platform::Timestamp;
use platform::idempotency::{IdempotencyKey, KeyState};
use serde::Serialize;

use crate::App;
use crate::error::Error;

/// What was answered to the same request before. That is looked for before anything else, because
/// the merchant's terms may have changed since and the answer has not.
pub(crate) async fn answered(
    app: &App,
    keyed: Option<&IdempotencyKey<'_>>,
) -> Result<Option<String>, Error> {
    let Some(keyed) = keyed else { return Ok(None) };
    match keyed.find(&mut *app.pool.get().await?).await? {
        KeyState::New => Ok(None),
        KeyState::Answered(answer) => Ok(Some(answer)),
        KeyState::OtherRequest => Err(keyed.misused().into()),
    }
}

/// Does the work and gives its answer as JSON; or, when the same was asked before under the same
/// key, the answer that was given then. Without a key the work is done.
pub(crate) async fn once<T: Serialize>(
    conn: &mut AsyncPgConnection,
    keyed: Option<&IdempotencyKey<'_>>,
    now: Timestamp,
    work: impl AsyncFnOnce(&mut AsyncPgConnection) -> Result<T, Error>,
) -> Result<String, Error> {
    let Some(keyed) = keyed else { return Ok(serde_json::to_string(&work(conn).await?)?) };
    match keyed.take(conn, now).await? {
        KeyState::New => {}
        KeyState::Answered(answer) => return Ok(answer),
        KeyState::OtherRequest => return Err(keyed.misused().into()),
    }
    let answer = serde_json::to_string(&work(conn).await?)?;
    keyed.answer(conn, &answer).await?;
    Ok(answer)
}
