//! Lookup of merchants in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use domain::{
    access::{MerchantId, Scope},
    merchant::Merchant,
};
use platform::{
    ErrorKind, Failure,
    identity::{Access, Caller},
};
use tokio::sync::watch;

/// The merchants in the memory of this process.
pub struct Merchants {
    merchants: RwLock<BTreeMap<MerchantId, Arc<Merchant>>>,
    /// The merchants by the host names of their portals.
    host_names: RwLock<HashMap<String, MerchantId>>,
    changes: watch::Sender<u64>,
}

/// Reason why a caller's merchant cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum MerchantError {
    #[error(transparent)]
    Access(#[from] Access),
    #[error("there is no merchant {0}")]
    Unknown(MerchantId),
    #[error("merchant {0} is not replicated yet")]
    NotReplicated(MerchantId),
}

impl Failure for MerchantError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Access(access) => access.kind(),
            Self::Unknown(_) => ErrorKind::Missing,
            Self::NotReplicated(_) => ErrorKind::Unavailable,
        }
    }
}

impl Merchants {
    pub(crate) fn empty() -> Self {
        Self {
            merchants: RwLock::default(),
            host_names: RwLock::default(),
            changes: watch::Sender::new(0),
        }
    }

    pub fn get(&self, id: &MerchantId) -> Option<Arc<Merchant>> {
        self.all().get(id).cloned()
    }

    /// The merchant whose portal has this host name, in lower case.
    pub fn by_host_name(&self, name: &str) -> Option<Arc<Merchant>> {
        let host_names = self.host_names.read().unwrap_or_else(PoisonError::into_inner);
        let id = host_names.get(name).cloned();
        drop(host_names);
        self.get(&id?)
    }

    /// All merchants. They cannot change while the caller keeps the guard.
    pub fn all(&self) -> RwLockReadGuard<'_, BTreeMap<MerchantId, Arc<Merchant>>> {
        self.merchants.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The merchant that a request is about.
    pub fn merchant_for(&self, caller: &Caller) -> Result<Arc<Merchant>, MerchantError> {
        let id = caller.merchant()?;
        self.get(id).ok_or_else(|| {
            // Auth issues tokens only for existing merchants, so this one is not replicated yet.
            let is_in_token = caller.claims.merchant.is_some();
            if is_in_token {
                MerchantError::NotReplicated(id.clone())
            } else {
                MerchantError::Unknown(id.clone())
            }
        })
    }

    /// The merchant whose records a list shows: the one of the request, else the one that a filter
    /// names, else `None` for all merchants, which needs the scope `read`. For a caller that is
    /// limited to a merchant, other merchants do not exist.
    pub fn listed_for(
        &self,
        caller: &Caller,
        named: Option<&MerchantId>,
    ) -> Result<Option<MerchantId>, MerchantError> {
        let unknown = |id: &MerchantId| MerchantError::Unknown(id.clone());
        let merchant = match (caller.merchant_scope(), named) {
            (Some(own), Some(named)) if own != named => return Err(unknown(named)),
            (Some(_), _) => self.merchant_for(caller)?,
            (None, Some(named)) => self.get(named).ok_or_else(|| unknown(named))?,
            (None, None) if caller.require(Scope::Read).is_ok() => return Ok(None),
            (None, None) => return Err(Access::NoMerchant.into()),
        };
        Ok(Some(merchant.identifier.clone()))
    }

    /// A counter of changes; zero until the merchants are loaded from the database.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Ends when the merchants are loaded from the database. Without them, no merchant has settings or endpoints:
    /// work that no request asks for waits for this.
    pub async fn loaded(&self) {
        // The sender lives as long as `self`, so this cannot fail.
        drop(self.changes().wait_for(|changes| *changes > 0).await);
    }

    /// Adds merchants that are new, or that differ from the current ones and are not older.
    pub(crate) fn update(&self, merchants: impl IntoIterator<Item = Merchant>) {
        let mut is_changed = false;
        let mut current = self.merchants.write().unwrap_or_else(PoisonError::into_inner);
        let mut host_names = self.host_names.write().unwrap_or_else(PoisonError::into_inner);
        for merchant in merchants {
            let known = current.get(&merchant.identifier).map(Arc::as_ref);
            if known.is_none_or(|known| known.version <= merchant.version && *known != merchant) {
                let id = &merchant.identifier;
                let names = |merchant: &Merchant| merchant.settings.appearance.host_names.clone();
                for name in known.map(names).unwrap_or_default() {
                    // Another merchant may have got the name before.
                    if host_names.get(&name) == Some(id) {
                        host_names.remove(&name);
                    }
                }
                host_names.extend(names(&merchant).into_iter().map(|name| (name, id.clone())));
                current.insert(id.clone(), Arc::new(merchant));
                is_changed = true;
            }
        }
        drop((current, host_names));
        if is_changed && *self.changes.borrow() > 0 {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Notes that the merchants are loaded from the database.
    pub(crate) fn set_loaded(&self) {
        self.changes.send_if_modified(|changes| {
            // Zero means that nothing is loaded, so the first load is the first change. A second load changes nothing
            // by itself.
            let is_first_load = *changes == 0;
            if is_first_load {
                *changes = 1;
            }
            is_first_load
        });
    }
}

#[cfg(test)]
mod tests {
    use domain::merchant::Settings;

    use super::*;

    #[test]
    fn a_host_name_leads_to_the_merchant_that_has_it_now() {
        let merchants = Merchants::empty();
        let merchant = |id: &str, version, host_names: &[&str]| {
            let mut merchant = Merchant::new(id.parse().unwrap(), Settings::new(id));
            merchant.version = version;
            let host_names = host_names.iter().map(ToString::to_string).collect();
            merchant.settings.appearance.host_names = host_names;
            merchant
        };
        let found = |name: &str| merchants.by_host_name(name).map(|it| it.identifier.to_string());
        merchants.update([merchant("acme", 1, &["a.test", "b.test"]), merchant("nova", 1, &[])]);
        assert_eq!(found("b.test").as_deref(), Some("acme"));
        // The events of two merchants are not ordered.
        merchants.update([merchant("nova", 2, &["b.test"])]);
        merchants.update([merchant("acme", 2, &["a.test"])]);
        assert_eq!(found("a.test").as_deref(), Some("acme"));
        assert_eq!(found("b.test").as_deref(), Some("nova"));
        merchants.update([merchant("acme", 3, &[])]);
        assert_eq!(found("a.test"), None);
    }
}
