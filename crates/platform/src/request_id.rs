//! The id of the request that is being handled.

use std::future::Future;

tokio::task_local! {
    static CURRENT: String;
}

/// The id of the current request, if there is one.
pub fn request_id() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Runs `work` for the request with this id.
pub(crate) async fn with_request_id<T>(id: String, work: impl Future<Output = T>) -> T {
    CURRENT.scope(id, work).await
}
