//! Logs the attempts of a batch and counts them, in one statement.

use std::collections::HashSet;

use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::erasure::ERASED;
use platform::database::{DatabaseError, column, prepared, sql};
use uuid::Uuid;

use crate::attempt::Attempt;
use crate::histogram;
use crate::outcome::Decision;
use crate::settlement::Settlement;

/// A row of `delivery_attempts`: the request, and the final state that it gave the delivery.
struct NewAttempt<'a> {
    settlement: &'a Settlement,
    attempt: &'a Attempt,
    settled: Option<&'static str>,
}

fn attempt_rows<'a>(batch: &'a [Settlement], settled: &HashSet<Uuid>) -> Vec<NewAttempt<'a>> {
    let mut rows = Vec::with_capacity(batch.len());
    for settlement in batch {
        let final_state = match settlement.decision {
            Decision::Delivered => Some("delivered"),
            Decision::Dead => Some("dead"),
            Decision::RetryAt(_) => None,
        };
        let unauthorized = settlement.unauthorized.iter();
        rows.extend(unauthorized.map(|attempt| NewAttempt { settlement, attempt, settled: None }));
        rows.push(NewAttempt {
            settlement,
            attempt: &settlement.attempt,
            settled: final_state.filter(|_| settled.contains(&settlement.id())),
        });
    }
    rows
}

/// Counts are merged within the batch. All transactions lock rows in the same order: the statement
/// runs its main query before the others, and each one sorts its rows.
///
/// A response may repeat the message as it was sent, so the responses to erased messages are logged erased. Only
/// an erasure changes a message: one that another transaction has locked is being erased. An erasure that comes
/// later waits for the lock and then finds the logged response.
const LOG_ATTEMPTS: &str = include_str!("log_attempts.sql");

/// Logs the attempts of a batch, and counts them for the reports. The connection is shared, so that the caller can send
/// the statement together with others.
pub(super) async fn log_attempts(
    mut conn: &AsyncPgConnection,
    batch: &[Settlement],
    settled: &HashSet<Uuid>,
) -> Result<(), DatabaseError> {
    let rows = attempt_rows(batch, settled);
    let statement = sql(
        LOG_ATTEMPTS,
        (
            column(&rows, |row| row.settlement.merchant()),
            column(&rows, |row| row.settlement.kind().name()),
            column(&rows, |row| row.settlement.id()),
            column(&rows, |row| row.settlement.message.replay_number),
            column(&rows, |row| row.settlement.message.attempt_number),
            column(&rows, |row| row.attempt.started_at),
            column(&rows, |row| i32::try_from(row.attempt.latency.as_millis()).unwrap_or(i32::MAX)),
            column(&rows, |row| histogram::bucket(row.attempt.latency)),
            column(&rows, |row| row.attempt.outcome.name()),
            column(&rows, |row| row.attempt.outcome.status().map(i32::from)),
            column(&rows, |row| printable(&row.attempt.outcome.detail())),
            column(&rows, |row| printable(&row.attempt.response_log)),
            (
                column(&rows, |row| row.settled),
                // Header values contain no NUL.
                column(&rows, |row| row.attempt.headers.request.as_str()),
                column(&rows, |row| row.attempt.headers.response.as_str()),
                ERASED,
            ),
        ),
    );
    prepared(statement).execute(&mut conn).await?;
    Ok(())
}

/// Replaces NUL, which PostgreSQL does not store in text.
fn printable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}
