//! A merchant that can be measured with.

use domain::merchant::Merchant;
use testkit::merchant;

/// A merchant whose endpoints are paused: messages wait in the ledger, and nobody is called.
pub(crate) fn paused_merchant(name: &str) -> Merchant {
    let mut merchant = merchant(name);
    merchant.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    merchant
}
