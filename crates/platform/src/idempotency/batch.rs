//! The keys of requests that one transaction processes together.
//!
//! The transaction locks the rows that the requests change, then finds the keys, and inserts them with their
//! responses last. A repeated request waits for the same rows and then finds its key.

use diesel_async::{AsyncPgConnection, RunQueryDsl as _};

use super::{IdempotencyKey, KeyState};
use crate::Timestamp;
use crate::database::{DatabaseError, column, prepared, sql};

crate::rows! {
    struct FoundRow {
        place: i64,
        request_digest: Vec<u8>,
        response: String,
    }
}

/// The states of keys, in order. The connection is shared, so that the caller can send the statement together
/// with others. `(SELECT $1)` hides the length of the arrays from the planner, which keeps the plan.
pub async fn find_all(
    mut conn: &AsyncPgConnection,
    keys: &[IdempotencyKey<'_>],
) -> Result<Vec<KeyState>, DatabaseError> {
    let mut states: Vec<_> = keys.iter().map(|_| KeyState::New).collect();
    if keys.is_empty() {
        return Ok(states);
    }
    let query = sql(
        include_str!("find_keys.sql"),
        (
            column(keys, |it| it.merchant_name()),
            column(keys, |it| it.operation),
            column(keys, |it| it.key),
        ),
    );
    let rows: Vec<FoundRow> = prepared(query).load(&mut conn).await?;
    for row in rows {
        let place = usize::try_from(row.place - 1).unwrap_or(usize::MAX);
        let (Some(key), Some(state)) = (keys.get(place), states.get_mut(place)) else {
            let case = format!("idempotency key {} of {} was found", row.place, keys.len());
            return Err(DatabaseError::Internal(case));
        };
        *state = if row.request_digest == key.request.as_bytes() {
            KeyState::Completed(row.response)
        } else {
            KeyState::OtherRequest
        };
    }
    Ok(states)
}

/// Takes the next of the states that [`find_all`] returned. A missing one must not count as new, because its
/// request would be done twice.
pub fn next_state(states: &mut impl Iterator<Item = KeyState>) -> Result<KeyState, DatabaseError> {
    let missing = || DatabaseError::Internal("an idempotency key has no state".to_owned());
    states.next().ok_or_else(missing)
}

/// Inserts keys with the responses of their requests. Returns false if another transaction has inserted one of
/// them since [`find_all`]: the caller then rolls back and tries again.
pub async fn insert_all(
    mut conn: &AsyncPgConnection,
    completed: &[(IdempotencyKey<'_>, String)],
    now: Timestamp,
) -> Result<bool, DatabaseError> {
    if completed.is_empty() {
        return Ok(true);
    }
    let mut sorted: Vec<_> = completed.iter().collect();
    // Two transactions with the same keys insert them in the same order.
    sorted.sort_unstable_by_key(|(it, _)| (it.merchant_name(), it.operation, it.key));
    let statement = sql(
        include_str!("insert_keys.sql"),
        (
            column(&sorted, |(it, _)| it.merchant_name()),
            column(&sorted, |(it, _)| it.operation),
            column(&sorted, |(it, _)| it.key),
            column(&sorted, |(it, _)| it.request.as_bytes().to_vec()),
            column(&sorted, |(_, response)| response.as_str()),
            now,
        ),
    );
    Ok(prepared(statement).execute(&mut conn).await? == completed.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, Failure as _};

    #[test]
    fn a_key_without_a_state_is_not_new() {
        let error = next_state(&mut std::iter::empty()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal);
    }
}
