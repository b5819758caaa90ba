//! Checks of the errors of services.

use platform::{ErrorKind, Failure, database::DatabaseError};

/// Checks that an error with which the database refuses work keeps its message and gets 429.
pub fn check_database_refusals<E: Failure + From<DatabaseError>>() {
    for limit in [DatabaseError::TooManyReaders, DatabaseError::Contended] {
        let message = limit.to_string();
        let error = E::from(limit);
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Limited, message));
    }
}
