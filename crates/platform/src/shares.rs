//! A limited number of places, of which one owner can have only a share.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// Places that owners take, for example requests that wait for something scarce.
#[derive(Debug)]
pub struct Shares<K: Eq + Hash> {
    most_of_one: usize,
    most_of_all: usize,
    taken: Mutex<HashMap<K, usize>>,
}

/// A place that is taken until the value is dropped.
#[derive(Debug)]
pub struct Share<K: Eq + Hash> {
    shares: Arc<Shares<K>>,
    owner: K,
}

impl<K: Eq + Hash + Clone> Shares<K> {
    pub fn new(most_of_one: usize, most_of_all: usize) -> Arc<Self> {
        Arc::new(Self { most_of_one, most_of_all, taken: Mutex::default() })
    }

    /// `None` if the owner, or all owners together, have too many places.
    pub fn try_acquire(self: &Arc<Self>, owner: &K) -> Option<Share<K>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let own = taken.get(owner).copied().unwrap_or_default();
        if own >= self.most_of_one || all >= self.most_of_all {
            return None;
        }
        taken.insert(owner.clone(), own + 1);
        Some(Share { shares: self.clone(), owner: owner.clone() })
    }
}

impl<K: Eq + Hash> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.owner) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.remove(&self.owner)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_takes_no_place_of_others() {
        let shares = Shares::new(2, 3);
        let own: Vec<_> = (0..2).map(|_| shares.try_acquire(&"a").unwrap()).collect();
        assert!(shares.try_acquire(&"a").is_none());
        let other = shares.try_acquire(&"b").unwrap();
        assert!(shares.try_acquire(&"c").is_none(), "all places are taken");
        drop(own);
        assert!(shares.try_acquire(&"a").is_some());
        drop(other);
        assert!(shares.taken.lock().unwrap().is_empty());
    }
}
