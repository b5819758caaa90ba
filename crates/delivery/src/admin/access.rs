//! Rights of callers: their scopes, and the merchant that they are limited to.

use domain::access::{MerchantId, Scope};
use platform::identity::{Access, Caller};

/// Returns the merchant whose deliveries the caller may read: its own, or the requested one or all.
/// Messages contain orders and returns, so the scopes for these let a merchant's client read its own
/// deliveries.
pub(super) fn readable_merchant(
    caller: &Caller,
    requested: Option<MerchantId>,
) -> Result<Option<MerchantId>, Access> {
    match caller.claims.merchant {
        Some(_) => caller.require_any(&[Scope::Read, Scope::Orders, Scope::Returns])?,
        None => caller.require(Scope::Read)?,
    }
    limit(caller, requested)
}

/// Returns the merchant whose deliveries the caller may send again: its own, or the requested one or
/// all.
pub(super) fn replayable_merchant(
    caller: &Caller,
    requested: Option<MerchantId>,
) -> Result<Option<MerchantId>, Access> {
    caller.require(Scope::Replay)?;
    limit(caller, requested)
}

fn limit(caller: &Caller, requested: Option<MerchantId>) -> Result<Option<MerchantId>, Access> {
    match (caller.merchant_scope(), requested) {
        (Some(own), Some(requested)) if *own != requested => {
            Err(Access::OtherMerchant(own.clone()))
        }
        (Some(own), _) => Ok(Some(own.clone())),
        (None, requested) => Ok(requested),
    }
}

/// Whether a caller that is limited to `limit` may see resources of this merchant.
pub(super) fn includes(limit: Option<&MerchantId>, merchant: Option<&str>) -> bool {
    limit.is_none_or(|limit| merchant == Some(limit.as_str()))
}
