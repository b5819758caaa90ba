//! Tells whether a request opened a connection or used one that was kept alive.
//!
//! The HTTP client does not report this. It waits for its connector in the task of the request, so the
//! connector can leave a mark in that task. A connection that another request uses first is opened in
//! the background, outside of that task.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

use tower_layer::Layer;
use tower_service::Service;

tokio::task_local! {
    static HAS_CONNECTED: Cell<bool>;
}

/// Runs a request. Returns its result and whether it opened a connection.
pub(super) async fn observe<F: Future>(request: F) -> (F::Output, bool) {
    let observed = async {
        let result = request.await;
        (result, HAS_CONNECTED.with(Cell::get))
    };
    HAS_CONNECTED.scope(Cell::new(false), observed).await
}

/// Marks the task of each request that opens a connection.
#[derive(Clone, Copy)]
pub(super) struct ConnectObserver;

impl<S> Layer<S> for ConnectObserver {
    type Service = ObservedConnector<S>;

    fn layer(&self, connector: S) -> Self::Service {
        ObservedConnector(connector)
    }
}

#[derive(Clone)]
pub(super) struct ObservedConnector<S>(S);

impl<R, S: Service<R>> Service<R> for ObservedConnector<S>
where
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, target: R) -> Self::Future {
        let connecting = self.0.call(target);
        Box::pin(async move {
            let connection = connecting.await;
            // Outside of `observe` nobody reads the mark.
            HAS_CONNECTED.try_with(|mark| mark.set(true)).ok();
            connection
        })
    }
}
