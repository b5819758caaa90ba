//! Outcomes of exchange orders.

pub(crate) mod confirmations;

use std::collections::BTreeMap;

use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::event::Event as _;
use domain::exchange::{ExchangeFailed, ExchangePlaced, ExchangeRenamed, ExchangeUndeliverable};
use domain::returns::{Discrepancy, Rma, UnitId};
use messaging::Outbox;
use platform::Timestamp;
use serde_json::json;

use crate::error::Error;
use crate::messages::Messages;
use crate::return_changes::{self, Cause};
use crate::store;

/// Records that the merchant accepted an exchange order. The returned units get its identifier and the
/// refund type of the price that the merchant had for the variant, and returns of the exchange order
/// name the original order. The exchange service does not have ordinary orders, so an event reports that
/// the identifier in the merchant's response is not used. A repeated event may come from a restored exchange
/// service, so the report is repeated.
pub(crate) async fn record_placed(
    conn: &mut AsyncPgConnection,
    messages: &Messages,
    outbox: &Outbox,
    placed: &ExchangePlaced,
    now: Timestamp,
) -> Result<(), Error> {
    let ExchangePlaced { merchant, rma_identifier, original_order_id, .. } = placed;
    let mut rma = find(conn, merchant, rma_identifier).await?;
    let (rejected, identifier) = choose_identifier(conn, placed).await?;
    let items = placed.items.iter();
    let units: BTreeMap<_, _> = items.map(|it| (it.unit.clone(), it.refund_type)).collect();
    let mut change = rma
        .exchange_placed(&units, identifier, now)
        .map_err(|refusal| Error::Refused(rma_identifier.clone(), refusal))?;
    // A repeated event changes no unit, and its discrepancy is stored already.
    if let Some(rejected) = rejected.filter(|_| !change.units.is_empty()) {
        change.discrepancies.push(Discrepancy::ExchangeOrderIdentifierTaken {
            rma_identifier: rma_identifier.clone(),
            order_identifier: original_order_id.clone(),
            rejected_identifier: rejected.clone(),
            exchange_order_identifier: identifier.clone(),
        });
    }
    let mut placed_units = rma.units.iter().filter(|unit| units.contains_key(&unit.id));
    let recorded = placed_units.find_map(|unit| unit.exchange_order_identifier.as_ref());
    store::exchange_orders::insert(conn, placed, recorded.unwrap_or(identifier)).await?;
    let recorded = recorded.filter(|it| **it != placed.exchange_order_identifier);
    outbox.append(conn, now, recorded.map(|it| renamed(placed, it, now))).await?;
    let detail = json!({ "exchange_order_identifier": identifier, "items": placed.items });
    let cause = Cause { actor: ExchangePlaced::TYPE, action: "exchange placed", detail };
    Ok(return_changes::record(conn, messages, &rma, &change, cause, now).await?)
}

/// The merchant's identifier that is not used, if there is one, and the identifier of the exchange order.
async fn choose_identifier<'a>(
    conn: &mut AsyncPgConnection,
    placed: &'a ExchangePlaced,
) -> Result<(Option<&'a String>, &'a String), Error> {
    let is_taken = placed.exchange_order_identifier == placed.original_order_id
        || store::exchange_orders::is_other_order(conn, placed).await?;
    Ok(if is_taken {
        (Some(&placed.exchange_order_identifier), &placed.own_identifier)
    } else {
        (placed.rejected_identifier.as_ref(), &placed.exchange_order_identifier)
    })
}

/// The event for an exchange order that has another identifier than the merchant's.
fn renamed(placed: &ExchangePlaced, identifier: &str, renamed_at: Timestamp) -> ExchangeRenamed {
    ExchangeRenamed {
        merchant: placed.merchant.clone(),
        rma_identifier: placed.rma_identifier.clone(),
        original_order_id: placed.original_order_id.clone(),
        rejected_identifier: placed.exchange_order_identifier.clone(),
        exchange_order_identifier: identifier.to_owned(),
        renamed_at,
    }
}

/// Records that units are not exchanged. They are refunded instead. Another return of the order may
/// have an exchange only if nothing was ordered.
pub(crate) async fn record_failed(
    conn: &mut AsyncPgConnection,
    messages: &Messages,
    failed: &ExchangeFailed,
    now: Timestamp,
) -> Result<(), Error> {
    let ExchangeFailed { merchant, rma_identifier, items, .. } = failed;
    let mut rma = find(conn, merchant, rma_identifier).await?;
    let units: Vec<UnitId> = items.iter().map(|item| item.unit.clone()).collect();
    let change = rma
        .exchange_failed(&units, now)
        .map_err(|refusal| Error::Refused(rma_identifier.clone(), refusal))?;
    let releasable: Vec<UnitId> = items
        .iter()
        .filter(|item| item.reason.allows_another_exchange())
        .map(|item| item.unit.clone())
        .collect();
    if !releasable.is_empty() {
        store::units::release_exchange(conn, merchant, rma_identifier, &releasable).await?;
    }
    let detail = json!({ "items": items });
    let cause = Cause { actor: ExchangeFailed::TYPE, action: "exchange failed", detail };
    Ok(return_changes::record(conn, messages, &rma, &change, cause, now).await?)
}

/// Records that the exchange order could not be delivered. Its units wait for an operator.
pub(crate) async fn record_undeliverable(
    conn: &mut AsyncPgConnection,
    messages: &Messages,
    event: &ExchangeUndeliverable,
    now: Timestamp,
) -> Result<(), Error> {
    let ExchangeUndeliverable { merchant, rma_identifier, items, reason, .. } = event;
    let mut rma = find(conn, merchant, rma_identifier).await?;
    let change = rma
        .exchange_undeliverable(items)
        .map_err(|refusal| Error::Refused(rma_identifier.clone(), refusal))?;
    let detail = json!({ "reason": reason });
    let actor = ExchangeUndeliverable::TYPE;
    let cause = Cause { actor, action: "exchange undeliverable", detail };
    Ok(return_changes::record(conn, messages, &rma, &change, cause, now).await?)
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
