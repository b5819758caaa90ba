//! Outbound shipments. The merchant receives a shipment when it is reported and whenever it changes.
//!
//! See docs/decisions/outbound-shipments.md.

mod inbound_facts;
mod views;

use api::warehouse::{ShipmentDetails, ShipmentSummary, ShipmentView};
use delivery::NewMessage;
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use domain::warehouse::{AsnPart, OutboundHeader, OutboundShipment, ShipmentChange};
use platform::http::PageLimit;
use platform::{Timestamp, idempotency};

pub(crate) use self::views::ShipmentPage;
use self::views::{show_details, show_new, show_stored};
use crate::App;
use crate::erasing::{erased_orders, without_erased};
use crate::error::Error;
use crate::list_position::{ListPosition, cursor_of};
use crate::record_keys;
use crate::request::Request;
use crate::store::outbound::{self as store, Lock, NewShipment};
use crate::store::{outbound_parts as parts_store, record_keys as keys_store};

/// Stores a shipment and enqueues its messages. Reporting the same shipment again returns the first
/// response.
pub(crate) async fn report(
    app: &App,
    request: Request<'_>,
    mut shipment: OutboundShipment,
) -> Result<String, Error> {
    inbound_facts::complete(app, request.merchant, &mut shipment).await?;
    let parts = shipment.split()?;
    let keys = record_keys::of_outbound_shipment(&shipment);
    let OutboundShipment { shipment_type, mut header, cartons } = shipment;
    drop(cartons);
    header.timestamp.get_or_insert(request.at);
    let merchant = request.merchant;
    let at = request.at;
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let erased = erased_orders(conn, merchant, &keys).await?;
            let header = without_erased(header.clone(), &erased.after(merchant, at))?;
            let new = NewShipment {
                merchant,
                shipment_type,
                header: &header,
                parts: &parts,
                digest: request.digest,
                at,
            };
            idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
                if parts.len() > 1 {
                    parts_store::lock(conn, merchant).await?;
                }
                let created_at = if store::insert(conn, &new).await? {
                    if !parts_store::insert(conn, &new).await? {
                        return Err(number_taken(&header));
                    }
                    keys_store::insert(conn, &[(merchant, &keys)], at).await?;
                    enqueue_messages(app, conn, merchant, &header, &parts, at).await?;
                    at
                } else {
                    first_reported_at(conn, &new).await?
                };
                Ok(show_new(shipment_type.as_str(), &header, &parts, created_at))
            })
            .await
        })
        .await
}

/// Returns when the same shipment was reported first. A different shipment with its number is rejected.
async fn first_reported_at(
    conn: &mut AsyncPgConnection,
    new: &NewShipment<'_>,
) -> Result<Timestamp, Error> {
    let stored = store::find(conn, new.merchant, &new.header.asn_number, Lock::None).await?;
    let stored = stored.filter(|stored| stored.digest == new.digest.as_bytes());
    stored.map(|stored| stored.created_at).ok_or_else(|| number_taken(new.header))
}

fn number_taken(header: &OutboundHeader) -> Error {
    let number = &header.asn_number;
    Error::field("$.asn_number", format!("{number}, or a number derived from it, is already used"))
}

/// Changes a shipment's date or status, and enqueues its messages if anything changed.
pub(crate) async fn change(
    app: &App,
    merchant: &MerchantId,
    number: &str,
    change: ShipmentChange,
) -> Result<ShipmentView, Error> {
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let mut stored = store::find(conn, merchant, number, Lock::Update)
                .await?
                .ok_or_else(|| not_found(number))?;
            // Under the lock, so that the ids of messages are in the order of the changes.
            let now = app.clock.now();
            let parts = if stored.header.change(change, now)? {
                let parts = parts_store::load(conn, merchant, number).await?;
                store::change(conn, merchant, &stored.header, now).await?;
                stored.updated_at = now;
                enqueue_messages(app, conn, merchant, &stored.header, &parts, now).await?;
                parts
            } else {
                parts_store::load_numbers(conn, merchant, number).await?
            };
            Ok(show_stored(&stored, &parts))
        })
        .await
}

pub(crate) async fn show(
    app: &App,
    merchant: &MerchantId,
    number: &str,
) -> Result<ShipmentDetails, Error> {
    let mut conn = app.pool.get().await?;
    let stored = store::find(&mut conn, merchant, number, Lock::None).await?;
    let stored = stored.ok_or_else(|| not_found(number))?;
    let parts = parts_store::load_numbers(&mut conn, merchant, number).await?;
    Ok(show_details(&stored, &parts))
}

/// Lists the shipments of a merchant or of all merchants, sorted by merchant and number.
pub(crate) async fn list(
    app: &App,
    merchant: Option<&MerchantId>,
    after: &ListPosition,
    limit: PageLimit,
) -> Result<ShipmentPage, Error> {
    let mut conn = app.pool.reader(merchant.map(MerchantId::as_str)).await?;
    let (mut found, is_truncated) = store::page(&mut conn, merchant, after, limit.rows()).await?;
    let next =
        limit.next_of(&mut found, is_truncated, |last| cursor_of(&last.merchant, &last.asn_number));
    let outbound_shipments = found.into_iter().map(ShipmentSummary::from).collect();
    Ok(ShipmentPage { outbound_shipments, next })
}

fn not_found(number: &str) -> Error {
    Error::NotFound { resource: "outbound shipment", number: number.to_owned() }
}

/// Enqueues one message for each part. Each part has an ordering key of its own: its messages have the complete
/// state of the part and say nothing about the others.
async fn enqueue_messages(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    header: &OutboundHeader,
    parts: &[AsnPart],
    now: Timestamp,
) -> Result<(), Error> {
    let version = app.deliveries.message_version(merchant, MessageKind::OutboundAsn);
    let mut messages = Vec::with_capacity(parts.len());
    for part in parts {
        messages.push(NewMessage {
            merchant: merchant.clone(),
            kind: MessageKind::OutboundAsn,
            version,
            ordering_key: Some(format!("asn:{}", part.asn_number)),
            event: format!("outbound_asn.{}", header.status.as_str()),
            body: header.body(&part.asn_number, &part.cartons)?.into(),
        });
    }
    app.deliveries.append(conn, now, &messages).await?;
    Ok(())
}
