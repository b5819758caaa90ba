//! DNS resolution with address checks. Results are not cached: each connection resolves and checks
//! again.

use std::error::Error;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Guard;

/// Resolver that drops forbidden addresses, and fails if none is left.
pub struct GuardedResolver {
    guard: Arc<Guard>,
    inner: Arc<dyn Resolve>,
}

impl GuardedResolver {
    pub fn new(guard: Arc<Guard>, inner: Arc<dyn Resolve>) -> Self {
        Self { guard, inner }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.guard);
        let resolving = self.inner.resolve(name);
        Box::pin(async move {
            let mut allowed = Vec::new();
            let mut rejected = None;
            for address in resolving.await? {
                match guard.check_address(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(error) => rejected = Some(error),
                }
            }
            match rejected {
                Some(error) if allowed.is_empty() => {
                    Err(Box::<dyn Error + Send + Sync>::from(error))
                }
                _ => {
                    let allowed: Addrs = Box::new(allowed.into_iter());
                    Ok(allowed)
                }
            }
        })
    }
}

/// Resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found: Vec<_> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}
