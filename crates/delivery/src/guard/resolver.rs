//! Host names to addresses, at the moment of dialling.
//!
//! What leaves [`GuardedResolver`] has been judged, and nothing is kept: the next connection
//! asks and judges again.

use std::error::Error;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Guard;

/// Passes on the addresses that the guard allows; when none is left, the reason.
pub struct GuardedResolver {
    guard: Arc<Guard>,
    names: Arc<dyn Resolve>,
}

impl GuardedResolver {
    pub fn new(guard: Arc<Guard>, names: Arc<dyn Resolve>) -> Self {
        Self { guard, names }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.guard);
        let resolving = self.names.resolve(name);
        Box::pin(async move {
            let mut allowed = Vec::new();
            let mut refused = None;
            for address in resolving.await? {
                match guard.check_address(address.ip()) {
                    Ok(()) => allowed.push(address),
                    Err(reason) => refused = Some(reason),
                }
            }
            match refused {
                Some(refused) if allowed.is_empty() => {
                    Err(Box::<dyn Error + Send + Sync>::from(refused))
                }
                _ => {
                    let allowed: Addrs = Box::new(allowed.into_iter());
                    Ok(allowed)
                }
            }
        })
    }
}

/// Asks the operating system.
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
