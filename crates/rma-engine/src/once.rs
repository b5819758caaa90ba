//! Requests that have their effect once, however often and however parallel they are sent.

use diesel_async::AsyncPgConnection;
use domain::document::{FieldError, Invalid};
use platform::Timestamp;
use serde::Serialize;

use crate::error::Error;
use crate::store::answers::{self, Keyed, Known};

/// Does the work and gives its answer as JSON; or, when the same was asked before under the same
/// key, the answer that was given then. Without a key the work is done.
pub(crate) async fn once<T: Serialize>(
    conn: &mut AsyncPgConnection,
    keyed: Option<&Keyed<'_>>,
    now: Timestamp,
    work: impl AsyncFnOnce(&mut AsyncPgConnection) -> Result<T, Error>,
) -> Result<String, Error> {
    let Some(keyed) = keyed else { return Ok(serde_json::to_string(&work(conn).await?)?) };
    match answers::take(conn, keyed, now).await? {
        Known::New => {}
        Known::Answered(answer) => return Ok(answer),
        Known::OtherRequest => {
            let detail = format!("another request was sent under this {}", keyed.name);
            return Err(Invalid::from(FieldError::invalid("$", detail)).into());
        }
    }
    let answer = serde_json::to_string(&work(conn).await?)?;
    answers::answer(conn, keyed, &answer).await?;
    Ok(answer)
}
