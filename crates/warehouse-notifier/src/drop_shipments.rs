//! Drop shipments. The merchant receives each confirmation and cancellation once, in order, and none
//! after the whole order was cancelled.

use chrono::{DateTime, Utc};
use delivery::NewMessage;
use diesel_async::AsyncConnection as _;
use domain::warehouse::{DropShipment, DropShipmentKind};
use platform::idempotency;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::App;
use crate::error::Error;
use crate::request::Request;
use crate::store::{drop_shipments as store, new_id};

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

/// Stores a confirmation or cancellation and enqueues its message. Repeating it returns the first
/// response.
pub(crate) async fn record(
    app: &App,
    request: Request<'_>,
    shipment: DropShipment,
) -> Result<String, Error> {
    let (merchant, at) = (request.merchant, request.at);
    let id = new_id(at);
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
            let cancelled = store::lock_order(conn, merchant, &shipment.order).await?;
            let response = if store::insert(conn, merchant, &shipment, id, at).await? {
                if cancelled.is_some() {
                    let detail = format!("order {} was cancelled", shipment.order);
                    return Err(Error::field(shipment.order_field(), detail));
                }
                if shipment.kind == DropShipmentKind::Cancellation {
                    store::cancel_order(conn, merchant, &shipment.order, at).await?;
                }
                let message = NewMessage {
                    merchant: merchant.clone(),
                    kind: shipment.kind.message_kind(),
                    ordering_key: Some(format!("order:{}", shipment.order)),
                    event: shipment.kind.event().to_owned(),
                    body: shipment.body.clone().into(),
                };
                app.deliveries.append(conn, at, &[message]).await?;
                Accepted::new(id, &shipment.order, at)
            } else {
                let stored = store::find(conn, merchant, &shipment).await?;
                let stored = stored.filter(|stored| stored.digest == shipment.digest.as_bytes());
                let stored = stored.ok_or_else(|| {
                    let detail =
                        format!("{} was already reported with other content", shipment.reference);
                    Error::field(shipment.reference_field(), detail)
                })?;
                Accepted::new(stored.id, &shipment.order, stored.created_at)
            };
            Ok(response)
        })
        .await
    })
    .await
}
