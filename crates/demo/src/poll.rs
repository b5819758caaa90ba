//! Polling with a timeout.

use std::time::Duration;

use anyhow::anyhow;
use tokio::time::{Instant, sleep, timeout_at};

pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Calls `check` until it returns a value. At the timeout the last error is returned.
pub(crate) async fn poll<T, F>(expected: &str, timeout: Duration, check: F) -> anyhow::Result<T>
where
    F: AsyncFn() -> anyhow::Result<Option<T>>,
{
    let deadline = Instant::now() + timeout;
    let mut last_error = None;
    while Instant::now() < deadline {
        match timeout_at(deadline, check()).await {
            Ok(Ok(Some(value))) => return Ok(value),
            Ok(Ok(None)) => last_error = None,
            Ok(Err(error)) => last_error = Some(error),
            Err(_elapsed) => break,
        }
        sleep(POLL_INTERVAL).await;
    }
    let message = format!("{expected}: timed out after {timeout:?}");
    Err(match last_error {
        Some(error) => error.context(message),
        None => anyhow!(message),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use anyhow::bail;

    use super::*;

    #[tokio::test]
    async fn a_check_that_hangs_times_out() {
        let timeout = Duration::from_millis(10);
        let at_once = poll("a value", timeout, async || Ok(Some(7))).await;
        assert_eq!(at_once.unwrap(), 7);
        let late = poll("a value", timeout, async || {
            std::future::pending::<anyhow::Result<Option<()>>>().await
        });
        assert_eq!(late.await.unwrap_err().to_string(), "a value: timed out after 10ms");
    }

    #[tokio::test]
    async fn a_check_that_hangs_does_not_hide_an_earlier_error() {
        let calls = AtomicUsize::new(0);
        let failed = poll("a value", 20 * POLL_INTERVAL, async || -> anyhow::Result<Option<()>> {
            if calls.fetch_add(1, Ordering::Relaxed) > 0 {
                std::future::pending().await
            }
            bail!("unreachable host")
        });
        let error = failed.await.unwrap_err();
        assert_eq!(format!("{error:#}"), "a value: timed out after 1s: unreachable host");
        assert_eq!(calls.into_inner(), 2);
    }
}
