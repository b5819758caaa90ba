//! Limits the requests that wait for messages.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::access::MerchantId;

/// Listeners of one merchant at a replica. `backhaul listen` is one for each service.
const MAX_OF_MERCHANT: usize = 5;
/// Listeners of all merchants at a replica.
const MAX_OF_ALL: usize = 50;

/// The number of listeners of each merchant.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<HashMap<MerchantId, usize>>);

/// A listener that counts until the value is dropped.
pub(crate) struct ListenerPermit<'a> {
    listeners: &'a Listeners,
    merchant: MerchantId,
}

impl Listeners {
    /// `None` if the merchant, or all merchants together, have too many listeners.
    pub(crate) fn try_acquire(&self, merchant: &MerchantId) -> Option<ListenerPermit<'_>> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counts.values().sum();
        let own = counts.get(merchant).copied().unwrap_or_default();
        if own >= MAX_OF_MERCHANT || all >= MAX_OF_ALL {
            return None;
        }
        counts.insert(merchant.clone(), own + 1);
        Some(ListenerPermit { listeners: self, merchant: merchant.clone() })
    }
}

impl Drop for ListenerPermit<'_> {
    fn drop(&mut self) {
        let mut counts = self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(&self.merchant) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(counts.remove(&self.merchant)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merchant(number: usize) -> MerchantId {
        format!("merchant-{number}").parse().unwrap()
    }

    #[test]
    fn the_listeners_of_a_merchant_take_no_place_of_others() {
        let listeners = Listeners::default();
        let own: Vec<_> =
            (0..MAX_OF_MERCHANT).map(|_| listeners.try_acquire(&merchant(0)).unwrap()).collect();
        assert!(listeners.try_acquire(&merchant(0)).is_none());
        let other = listeners.try_acquire(&merchant(1));
        assert!(other.is_some());
        drop(own);
        assert!(listeners.try_acquire(&merchant(0)).is_some());
    }

    #[test]
    fn all_merchants_together_have_a_limit() {
        let listeners = Listeners::default();
        let all: Vec<_> = (0..MAX_OF_ALL)
            .map(|number| listeners.try_acquire(&merchant(number)).unwrap())
            .collect();
        assert!(listeners.try_acquire(&merchant(MAX_OF_ALL)).is_none());
        drop(all);
        assert!(listeners.0.lock().unwrap().is_empty());
    }
}
