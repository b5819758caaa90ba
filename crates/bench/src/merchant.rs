//! The merchant of the benchmarks.

use domain::merchant::Merchant;
use testkit::merchant;

/// A merchant with paused endpoints, so that no messages are sent.
pub(crate) fn paused_merchant(name: &str) -> Merchant {
    let mut merchant = merchant(name);
    merchant.endpoints.values_mut().for_each(|endpoint| endpoint.paused = true);
    merchant
}
