//! The position of an order in a list.

use domain::access::MerchantId;

/// The position of an order in a list.
#[derive(Debug)]
pub(crate) struct OrderKey {
    pub(crate) merchant: MerchantId,
    pub(crate) identifier: String,
}
