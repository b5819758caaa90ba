//! Work that may take long, outside of the HTTP workers: a worker serves the requests of all merchants.

use tokio::task::spawn_blocking;

use crate::error::Error;

/// Runs work on a thread of its own. The work goes on when its request ends.
pub(crate) async fn off_worker<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(|error| Error::Internal(error.to_string()))
}
