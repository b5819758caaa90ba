//! Lookup of merchants in memory.

use std::{
    collections::HashMap,
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
    merchants: RwLock<HashMap<MerchantId, Arc<Merchant>>>,
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
        Self { merchants: RwLock::default(), changes: watch::Sender::new(0) }
    }

    pub fn get(&self, id: &MerchantId) -> Option<Arc<Merchant>> {
        self.all().get(id).cloned()
    }

    /// All merchants. They cannot change while the caller keeps the guard.
    pub fn all(&self) -> RwLockReadGuard<'_, HashMap<MerchantId, Arc<Merchant>>> {
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
    ) -> Result<Option<Arc<Merchant>>, MerchantError> {
        let unknown = |id: &MerchantId| MerchantError::Unknown(id.clone());
        match (caller.merchant_scope(), named) {
            (Some(own), Some(named)) if own != named => Err(unknown(named)),
            (Some(_), _) => self.merchant_for(caller).map(Some),
            (None, Some(named)) => self.get(named).map(Some).ok_or_else(|| unknown(named)),
            (None, None) if caller.require(Scope::Read).is_ok() => Ok(None),
            (None, None) => Err(Access::NoMerchant.into()),
        }
    }

    /// A counter of changes; zero until the merchants are loaded from the database.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Adds merchants that are new, or that differ from the current ones and are not older.
    pub(crate) fn update(&self, merchants: impl IntoIterator<Item = Merchant>) {
        let mut is_changed = false;
        let mut current = self.merchants.write().unwrap_or_else(PoisonError::into_inner);
        for merchant in merchants {
            let known = current.get(&merchant.identifier).map(Arc::as_ref);
            if known.is_none_or(|known| known.version <= merchant.version && *known != merchant) {
                current.insert(merchant.identifier.clone(), Arc::new(merchant));
                is_changed = true;
            }
        }
        drop(current);
        if is_changed && *self.changes.borrow() > 0 {
            self.changes.send_modify(|changes| *changes += 1);
        }
    }

    /// Notes that the merchants are loaded from the database.
    pub(crate) fn set_loaded(&self) {
        self.changes.send_if_modified(|changes| {
            let is_first_load = *changes == 0;
            *changes += u64::from(is_first_load);
            is_first_load
        });
    }
}
