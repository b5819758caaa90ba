//! Drop shipments: each thing that happens to one is told once, in order, and nothing is told of an
//! order after it was cancelled as a whole.

use delivery::NewMessage;
use diesel_async::AsyncConnection as _;
use domain::warehouse::{DropShipment, DropShipmentKind};

use platform::idempotency;

use crate::App;
use crate::error::Error;
use crate::http::drop_shipments::Accepted;
use crate::request::Request;
use crate::store::{drop_shipments as store, new_id};

/// Tells the merchant, unless it was told before.
pub(crate) async fn tell(
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
            let answer = if store::insert(conn, merchant, &shipment, id, at).await? {
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
                let told = store::told(conn, merchant, &shipment).await?;
                let told = told.filter(|told| told.digest == shipment.digest.as_bytes());
                let told = told.ok_or_else(|| {
                    let detail =
                        format!("{} was told of already, and otherwise", shipment.reference);
                    Error::field(shipment.reference_field(), detail)
                })?;
                Accepted::new(told.id, &shipment.order, told.created_at)
            };
            Ok(answer)
        })
        .await
    })
    .await
}
