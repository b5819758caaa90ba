//! What became of exchange orders.

use delivery::Deliveries;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::event::Event as _;
use domain::exchange::{ExchangeFailed, ExchangePlaced};
use domain::returns::Rma;
use platform::Timestamp;
use serde_json::json;

use crate::chronicle::{self, Cause};
use crate::error::Error;
use crate::store;

/// The merchant took the order: the units carry its identifier, and its own units will carry the
/// identifier of the order that it was placed against.
pub(crate) async fn note_placed(
    conn: &mut AsyncPgConnection,
    deliveries: &Deliveries,
    placed: &ExchangePlaced,
    now: Timestamp,
) -> Result<(), Error> {
    let ExchangePlaced { merchant, rma_identifier, exchange_order_identifier, .. } = placed;
    let mut rma = find(conn, merchant, rma_identifier).await?;
    // A merchant may answer with the identifier that it was sent: no order is its own exchange.
    if *exchange_order_identifier != placed.original_order_id {
        store::orders::note_exchange(conn, placed).await?;
    }
    let change = rma
        .exchange_placed(&placed.units, exchange_order_identifier, now)
        .map_err(|refusal| Error::Refused(rma_identifier.clone(), refusal))?;
    let detail = json!({ "exchange_order_identifier": exchange_order_identifier });
    let cause = Cause { actor: ExchangePlaced::TYPE, what: "exchange placed", detail };
    Ok(chronicle::record(conn, deliveries, merchant, &rma, &change, cause, now).await?)
}

/// The units are refunded instead, or wait for an operator. Only where nothing was ordered another
/// return of the order may have an exchange.
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
        store::returns::free_orders(conn, merchant, rma_identifier, units).await?;
    }
    let detail = json!({ "failure": failed.cause, "detail": failed.detail });
    let cause = Cause { actor: ExchangeFailed::TYPE, what: "exchange failed", detail };
    Ok(chronicle::record(conn, deliveries, merchant, &rma, &change, cause, now).await?)
}

/// Exchanges are asked for by this service only, so its return is here; if it is not, people look.
async fn find(
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    rma_identifier: &str,
) -> Result<Rma, Error> {
    let found = store::returns::lock(conn, merchant, rma_identifier).await?;
    found.ok_or_else(|| Error::NoReturn(rma_identifier.to_owned()))
}
