//! Waits until a condition is met.

use std::time::Duration;

use anyhow::Context as _;

const INTERVAL: Duration = Duration::from_millis(50);

/// Calls `check` until it returns a value. An error ends the wait.
pub(crate) async fn poll<T>(
    expected: &str,
    timeout: Duration,
    check: impl AsyncFn() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    let polling = async {
        let mut ticks = tokio::time::interval(INTERVAL);
        loop {
            ticks.tick().await;
            if let Some(value) = check().await? {
                return Ok(value);
            }
        }
    };
    let waited = tokio::time::timeout(timeout, polling).await;
    waited.with_context(|| format!("{expected}: not within {timeout:?}"))?
}
