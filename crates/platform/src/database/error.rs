//! Errors of the database, and which of them are temporary.

use diesel::result::{DatabaseErrorKind, Error as QueryError};
use diesel_async::pooled_connection::deadpool::PoolError;

use crate::{ErrorKind, Failure, Timestamp};

/// An error of the database or of the connection to it.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("no database connection")]
    Pool(#[from] PoolError),
    #[error("this service runs too many lists, searches and reports at once")]
    TooManyReaders,
    #[error("too many requests about the same rows at once, or other changes keep them locked")]
    Contended,
    #[error("database query failed")]
    Query(#[from] QueryError),
    #[error(
        "the clock of this process, {process}, and that of the database, {database}, differ by more than an hour"
    )]
    ClocksDiffer { process: Timestamp, database: Timestamp },
    /// A case that the code or a constraint rules out. It fails, so that a mistake is noticed and nothing
    /// wrong is stored. The text names the case.
    #[error("internal error: {0}")]
    Internal(String),
}

impl DatabaseError {
    /// The name of the violated constraint, if the error is a violation.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Query(QueryError::DatabaseError(_, information)) => information.constraint_name(),
            _ => None,
        }
    }
}

impl Failure for DatabaseError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Pool(_) | Self::ClocksDiffer { .. } => ErrorKind::Unavailable,
            Self::TooManyReaders | Self::Contended => ErrorKind::Limited,
            Self::Query(error) => error.kind(),
            Self::Internal(_) => ErrorKind::Internal,
        }
    }
}

impl Failure for QueryError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::NotFound => ErrorKind::Missing,
            Self::BrokenTransactionManager => ErrorKind::Unavailable,
            Self::RollbackErrorOnCommit { commit_error, .. } => commit_error.kind(),
            Self::DatabaseError(kind, information) => match kind {
                DatabaseErrorKind::ClosedConnection
                | DatabaseErrorKind::UnableToSendCommand
                | DatabaseErrorKind::SerializationFailure
                | DatabaseErrorKind::ReadOnlyTransaction => ErrorKind::Unavailable,
                // A row without a partition; maintenance is about to create it.
                DatabaseErrorKind::CheckViolation if information.constraint_name().is_none() => {
                    ErrorKind::Unavailable
                }
                _ if is_transient(information.message()) => ErrorKind::Unavailable,
                _ => ErrorKind::Internal,
            },
            _ => ErrorKind::Internal,
        }
    }
}

/// Whether the same statement may succeed later. Diesel does not expose the SQLSTATE, so the message
/// decides; every connection turns the translation of messages off.
fn is_transient(message: &str) -> bool {
    const TRANSIENT: [&str; 9] = [
        "canceling statement due to",
        "terminating connection due to",
        "the database system is",
        // Transaction ids run out until a vacuum.
        "database is not accepting commands",
        "deadlock detected",
        "remaining connection slots are reserved",
        "could not extend file",
        "out of memory",
        "out of shared memory",
    ];
    const DISK_FULL: &str = "No space left on device";
    TRANSIENT.iter().any(|text| message.starts_with(text)) || message.ends_with(DISK_FULL)
}

/// Whether a statement exceeded its timeout. The database is up then, so the same statement may
/// time out again.
pub fn timed_out(error: &(dyn std::error::Error + 'static)) -> bool {
    has_message(error, "canceling statement due to statement timeout")
}

/// Whether a statement waited for a lock longer than `lock_timeout`.
pub fn lock_timed_out(error: &(dyn std::error::Error + 'static)) -> bool {
    has_message(error, "canceling statement due to lock timeout")
}

/// Whether PostgreSQL ended a deadlock with this transaction.
pub(crate) fn deadlocked(error: &(dyn std::error::Error + 'static)) -> bool {
    has_message(error, "deadlock detected")
}

fn has_message(error: &(dyn std::error::Error + 'static), message: &str) -> bool {
    let is_it = |error: &(dyn std::error::Error + 'static)| match error.downcast_ref() {
        Some(QueryError::DatabaseError(_, information)) => information.message() == message,
        _ => false,
    };
    std::iter::successors(Some(error), |error| error.source()).any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_disk_or_memory_is_unavailable() {
        let kind = |message: &str| {
            let unknown = DatabaseErrorKind::Unknown;
            QueryError::DatabaseError(unknown, Box::new(message.to_owned())).kind()
        };
        for message in [
            "could not extend file \"base/5/16384\": No space left on device",
            "could not extend file \"base/5/16384\": wrote only 4096 of 8192 bytes at block 7",
            "could not write to file \"base/pgsql_tmp/pgsql_tmp7.0\": No space left on device",
            "out of memory",
            "out of shared memory",
        ] {
            assert_eq!(kind(message), ErrorKind::Unavailable, "{message}");
        }
        assert_eq!(kind("invalid memory alloc request size 1073741824"), ErrorKind::Internal);
        assert_eq!(kind("relation \"orders\" does not exist"), ErrorKind::Internal);
    }
}
