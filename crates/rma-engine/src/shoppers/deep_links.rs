//! Deep links and gift codes: merchants give them to shoppers, who then need no look-up. A link is sealed
//! and carries the id of its record, so that it can be revoked. A gift code is computed from the configured
//! keys.

use chrono::{DateTime, TimeDelta, Utc};
use domain::merchant::Merchant;
use platform::Timestamp;
use platform::database::{DatabaseError, Pool, delete_older_than};
use platform::shopper_proof::{LinkedOrder, ProvenOrder};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::error::Error;
use crate::store::deep_links::LinkRecord;
use crate::store::{deep_links as store, orders};

/// The record of a link is kept for this long after the link expired.
const RETENTION: TimeDelta = TimeDelta::days(90);

/// The order of a new deep link.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeepLinkBody)]
pub(crate) struct NewDeepLink {
    #[schema(min_length = 1, max_length = 255)]
    pub(crate) order_identifier: String,
    /// Whether the link is for the giftee, who sees no amounts and can choose no refund.
    #[schema(required = false, default = false)]
    pub(crate) is_gift: bool,
    #[schema(value_type = Option<u16>, minimum = 1, maximum = 730, default = 90)]
    pub(crate) valid_days: i64,
}

/// A deep link.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeepLink {
    /// Names the link in the list and when it is revoked.
    id: Uuid,
    /// A page of the portal. Everyone who has the link can return units of the order.
    #[schema(example = "https://portal.backhaul.example/acme/l/k1.c2VhbGVk")]
    url: String,
    /// Only for a gift: the code for the gift slip. It does not expire.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "K7QP-2MXA-9RTD")]
    gift_code: Option<String>,
    expires_at: DateTime<Utc>,
}

/// The record of a deep link, without the link.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordedLink {
    id: Uuid,
    order_identifier: String,
    is_gift: bool,
    /// The client or the person that made the link.
    created_by: String,
    created_at: DateTime<Utc>,
    expires_at: DateTime<Utc>,
    /// Present if the link was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<DateTime<Utc>>,
}

/// The latest 100 links of an order, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordedLinks {
    deep_links: Vec<RecordedLink>,
}

impl From<LinkRecord> for RecordedLink {
    fn from(record: LinkRecord) -> Self {
        Self {
            id: record.id,
            order_identifier: record.order_identifier,
            is_gift: record.is_gift,
            created_by: record.created_by,
            created_at: record.created_at,
            expires_at: record.expires_at,
            revoked_by: record.revoked_by,
            revoked_at: record.revoked_at,
        }
    }
}

/// Creates a link to one of the merchant's orders, and its record.
pub(crate) async fn create(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    new: &NewDeepLink,
) -> Result<DeepLink, Error> {
    let merchant = &merchant.identifier;
    let order = &new.order_identifier;
    let mut conn = app.pool.get().await?;
    if !orders::exists(&mut conn, merchant, order).await? {
        return Err(Error::NoOrder(order.clone()));
    }
    let now = app.clock.now();
    let record = LinkRecord {
        id: Uuid::now_v7(),
        order_identifier: order.clone(),
        is_gift: new.is_gift,
        created_by: actor.to_owned(),
        created_at: now,
        expires_at: now + TimeDelta::days(new.valid_days),
        revoked_by: None,
        revoked_at: None,
    };
    let id = record.id;
    let expires_at = record.expires_at;
    let proven = ProvenOrder { order_identifier: order.clone(), is_gift: new.is_gift, expires_at };
    let token = app.proof_keys.deep_link(merchant, &LinkedOrder { id, order: proven })?;
    let gift_code = new.is_gift.then(|| app.proof_keys.gift_code(merchant, order)).transpose()?;
    store::insert(&mut conn, merchant, &record).await?;
    let portal = app.portal.public_url.trim_end_matches('/');
    Ok(DeepLink { id, url: format!("{portal}/{merchant}/l/{token}"), gift_code, expires_at })
}

pub(crate) async fn list(
    app: &App,
    merchant: &Merchant,
    order_identifier: &str,
) -> Result<RecordedLinks, Error> {
    let mut conn = app.pool.reader(Some(merchant.identifier.as_str())).await?;
    let links = store::list(&mut conn, &merchant.identifier, order_identifier).await?;
    Ok(RecordedLinks { deep_links: links.into_iter().map(RecordedLink::from).collect() })
}

/// Revokes a link, so that it opens nothing from now on.
pub(crate) async fn revoke(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    id: Uuid,
) -> Result<RecordedLink, Error> {
    let merchant = &merchant.identifier;
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let revoked = store::revoke(conn, merchant, id, actor, app.clock.now()).await?;
            revoked.map(RecordedLink::from).ok_or(Error::NoDeepLink(id))
        })
        .await
}

pub(crate) async fn delete_expired(pool: &Pool, now: Timestamp) -> Result<(), DatabaseError> {
    delete_older_than(pool, "deep_links", "expires_at", now, RETENTION).await
}
