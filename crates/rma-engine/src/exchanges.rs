//! Outcomes of exchange orders.

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::event::Event as _;
use domain::exchange::{ExchangeFailed, ExchangePlaced};
use domain::returns::Rma;
use platform::Timestamp;
use serde_json::json;

use crate::error::Error;
use crate::return_changes::{self, Cause};
use crate::store;

/// Records that the merchant accepted an exchange order. The returned units get its identifier, and
/// returns of the exchange order name the original order.
pub(crate) async fn note_placed(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    placed: &ExchangePlaced,
    now: Timestamp,
) -> Result<(), Error> {
    let ExchangePlaced { merchant, rma_identifier, exchange_order_identifier, .. } = placed;
    let mut rma = find(conn, merchant, rma_identifier).await?;
    // A merchant may respond with the original order's identifier: no order is its own exchange.
    if *exchange_order_identifier != placed.original_order_id {
        store::orders::note_exchange(conn, placed).await?;
    }
    let change = rma
        .exchange_placed(&placed.units, exchange_order_identifier, now)
        .map_err(|refusal| Error::Refused(rma_identifier.clone(), refusal))?;
    let detail = json!({ "exchange_order_identifier": exchange_order_identifier });
    let cause = Cause { actor: ExchangePlaced::TYPE, action: "exchange placed", detail };
    Ok(return_changes::record(conn, deliveries, merchant, &rma, &change, cause, now).await?)
}

/// Records that an exchange order failed. The units are refunded instead, or wait for an operator.
/// Another return of the order may have an exchange only if nothing was ordered.
pub(crate) async fn note_failed(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    failed: &ExchangeFailed,
    now: Timestamp,
) -> Result<(), Error> {
    let ExchangeFailed { merchant, rma_identifier, units, .. } = failed;
    let mut rma = find(conn, merchant, rma_identifier).await?;
    let change = rma
        .exchange_failed(units, failed.cause, now)
        .map_err(|refusal| Error::Refused(rma_identifier.clone(), refusal))?;
    if failed.cause.allows_another_exchange() {
        store::returns::release_exchange(conn, merchant, rma_identifier, units).await?;
    }
    let detail = json!({ "failure": failed.cause, "detail": failed.detail });
    let cause = Cause { actor: ExchangeFailed::TYPE, action: "exchange failed", detail };
    Ok(return_changes::record(conn, deliveries, merchant, &rma, &change, cause, now).await?)
}

/// Locks the return. Only this service requests exchanges, so a missing return is an error and the
/// event is dead-lettered.
async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Rma, Error> {
    let found = store::returns::lock(conn, merchant, rma_identifier).await?;
    found.ok_or_else(|| Error::NoReturn(rma_identifier.to_owned()))
}
