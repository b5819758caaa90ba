//! Deep links and gift codes: merchants give them to shoppers, who then need no look-up. Both are computed
//! from the configured keys, so that nothing is stored.

use chrono::{DateTime, TimeDelta, Utc};
use domain::merchant::Merchant;
use platform::shopper_proof::ProvenOrder;
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::store;

/// A request for a deep link.
#[derive(Debug)]
pub(crate) struct NewDeepLink {
    pub(crate) order_identifier: String,
    pub(crate) is_gift: bool,
    pub(crate) valid_days: i64,
}

/// A deep link.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeepLink {
    /// A page of the portal. Everyone who has the link can return units of the order.
    #[schema(example = "https://portal.backhaul.example/acme/l/k1.c2VhbGVk")]
    url: String,
    /// Only for a gift: the code for the gift slip. It does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "K7QP-2MXA-9RTD")]
    gift_code: Option<String>,
    expires_at: DateTime<Utc>,
}

/// Creates a link to one of the merchant's orders.
pub(crate) async fn create(
    app: &App,
    merchant: &Merchant,
    new: &NewDeepLink,
) -> Result<DeepLink, Error> {
    let (id, order) = (&merchant.identifier, &new.order_identifier);
    let mut conn = app.pool.get().await?;
    if !store::orders::exists(&mut conn, id, order).await? {
        return Err(Error::NoOrder(order.clone()));
    }
    let expires_at = app.clock.now() + TimeDelta::days(new.valid_days);
    let linked = ProvenOrder { order_identifier: order.clone(), is_gift: new.is_gift, expires_at };
    let token = app.proof_keys.deep_link(id, &linked)?;
    let gift_code = new.is_gift.then(|| app.proof_keys.gift_code(id, order)).transpose()?;
    let portal = app.portal.public_url.trim_end_matches('/');
    Ok(DeepLink { url: format!("{portal}/{id}/l/{token}"), gift_code, expires_at })
}
