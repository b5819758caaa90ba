//! Drop shipments. The merchant receives each confirmation and cancellation once, in order, and none
//! after the whole order was cancelled.
//!
//! See docs/decisions/drop-shipments.md.

use api::warehouse::DropShipmentView;
use chrono::{DateTime, Utc};
use delivery::NewMessage;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::erasure::{erase, erase_text};
use domain::warehouse::{DropShipment, DropShipmentKind};
use platform::http::PageLimit;
use platform::{Timestamp, idempotency};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::erasing::erased_orders;
use crate::error::Error;
use crate::record_keys;
use crate::request::Request;
use crate::store::drop_shipments::{self as store, ListedDropShipment};
use crate::store::{new_id, record_keys as keys_store};

/// An accepted confirmation or cancellation.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Accepted {
    id: Uuid,
    /// The merchant's identifier of the order.
    order: String,
    created_at: DateTime<Utc>,
}

impl Accepted {
    pub(crate) fn new(id: Uuid, order: &str, created_at: DateTime<Utc>) -> Self {
        Self { id, order: order.to_owned(), created_at }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DropShipmentPage {
    /// Newest first.
    drop_shipments: Vec<DropShipmentView>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl From<ListedDropShipment> for DropShipmentView {
    fn from(listed: ListedDropShipment) -> Self {
        let ListedDropShipment { merchant, id, kind, order_identifier: order, created_at } = listed;
        Self { merchant, id, kind, order, created_at }
    }
}

/// Stores a confirmation or cancellation and enqueues its message. Repeating it returns the first
/// response.
pub(crate) async fn record(
    app: &App,
    request: Request<'_>,
    shipment: DropShipment,
) -> Result<String, Error> {
    let merchant = request.merchant;
    let at = request.at;
    let id = new_id(at);
    let keys = record_keys::of_drop_shipment(&shipment);
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let erased = erased_orders(conn, merchant, &keys).await?;
            let is_erased = !erased.after(merchant, at).is_empty();
            idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
                let cancelled = store::lock_order(conn, merchant, &shipment.order).await?;
                if store::insert(conn, merchant, &shipment, id, at).await? {
                    if cancelled.is_some() {
                        let detail = format!("order {} was cancelled", shipment.order);
                        return Err(Error::field(shipment.order_field(), detail));
                    }
                    let erased_body =
                        is_erased.then(|| erase_text(&shipment.body, erase)).flatten();
                    let body = erased_body.unwrap_or_else(|| shipment.body.clone());
                    apply(app, conn, merchant, &shipment, body, at).await?;
                    keys_store::insert(conn, &[(merchant, &keys)], at).await?;
                    return Ok(Accepted::new(id, &shipment.order, at));
                }
                let stored = store::find(conn, merchant, &shipment).await?;
                let stored = stored.filter(|stored| stored.digest == shipment.digest.as_bytes());
                let stored = stored.ok_or_else(|| {
                    let detail =
                        format!("{} was already reported with other content", shipment.reference);
                    Error::field(shipment.reference_field(), detail)
                })?;
                Ok(Accepted::new(stored.id, &shipment.order, stored.created_at))
            })
            .await
        })
        .await
}

/// Applies a confirmation or cancellation that is new.
async fn apply(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    shipment: &DropShipment,
    body: String,
    at: Timestamp,
) -> Result<(), Error> {
    if shipment.kind == DropShipmentKind::Cancellation {
        store::cancel_order(conn, merchant, &shipment.order, at).await?;
    }
    let kind = shipment.kind.message_kind();
    let message = NewMessage {
        merchant: merchant.clone(),
        kind,
        version: app.deliveries.message_version(merchant, kind),
        ordering_key: Some(format!("order:{}", shipment.order)),
        event: shipment.kind.event().to_owned(),
        body: body.into(),
    };
    app.deliveries.append(conn, at, &[message]).await?;
    Ok(())
}

/// Lists confirmations and cancellations, newest first: of all merchants, of one merchant, or of one of its
/// orders.
pub(crate) async fn list(
    app: &App,
    merchant: Option<&MerchantId>,
    order: Option<&str>,
    after: Option<Uuid>,
    limit: PageLimit,
) -> Result<DropShipmentPage, Error> {
    let mut conn = app.pool.reader(merchant.map(MerchantId::as_str)).await?;
    let mut found = store::page(&mut conn, merchant, order, after, limit.rows()).await?;
    let next = limit.next(&mut found, |last| last.id.to_string());
    let drop_shipments = found.into_iter().map(DropShipmentView::from).collect();
    Ok(DropShipmentPage { drop_shipments, next })
}
