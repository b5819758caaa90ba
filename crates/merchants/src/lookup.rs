//! Lookup of merchants in memory.

use std::{collections::HashMap, sync::Arc};

use arc_swap::ArcSwap;
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
    merchants: ArcSwap<HashMap<MerchantId, Arc<Merchant>>>,
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
        Self { merchants: ArcSwap::default(), changes: watch::Sender::new(0) }
    }

    pub fn get(&self, id: &MerchantId) -> Option<Arc<Merchant>> {
        self.merchants.load().get(id).cloned()
    }

    pub fn all(&self) -> Arc<HashMap<MerchantId, Arc<Merchant>>> {
        self.merchants.load_full()
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

    /// Adds merchants that are new or newer than the current ones.
    pub(crate) fn update(&self, merchants: Vec<Merchant>) {
        let current = self.merchants.load();
        let is_changed = |merchant: &Merchant| {
            let current = current.get(&merchant.identifier).map(Arc::as_ref);
            current.is_none_or(|current| current.version <= merchant.version && current != merchant)
        };
        let changed: Vec<_> = merchants.into_iter().filter(is_changed).collect();
        let is_first_load = *self.changes.borrow() == 0;
        if changed.is_empty() && !is_first_load {
            return;
        }
        let mut merchants = HashMap::clone(&current);
        let changed = changed.into_iter();
        merchants.extend(changed.map(|it| (it.identifier.clone(), Arc::new(it))));
        self.merchants.store(Arc::new(merchants));
        self.changes.send_modify(|changes| *changes += 1);
    }
}
