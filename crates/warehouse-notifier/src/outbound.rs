//! Shipments that leave: told when they are reported, and told again when they change.

use delivery::NewMessage;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use domain::warehouse::{AsnPart, OutboundHeader, OutboundShipment, ShipmentChange};
use platform::{Timestamp, idempotency};

use crate::App;
use crate::error::Error;
use crate::http::outbound::ShipmentView;
use crate::request::Request;
use crate::store::outbound::{self as store, Lock, NewShipment};

/// Stores a shipment and tells the merchant, unless it was reported before.
pub(crate) async fn report(
    app: &App,
    request: Request<'_>,
    shipment: OutboundShipment,
) -> Result<String, Error> {
    let parts = shipment.split()?;
    let OutboundShipment { shipment_type, mut header, cartons } = shipment;
    drop(cartons);
    header.timestamp.get_or_insert(request.at);
    let (merchant, at) = (request.merchant, request.at);
    let new = NewShipment {
        merchant,
        shipment_type,
        header: &header,
        parts: &parts,
        digest: request.digest,
        at,
    };
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
            if parts.len() > 1 {
                store::lock_cutting(conn, merchant).await?;
            }
            let created_at = if store::insert(conn, &new).await? {
                if !store::insert_parts(conn, &new).await? {
                    return Err(used(&header));
                }
                tell(app, conn, merchant, &header, &parts, at).await?;
                at
            } else {
                reported_before(conn, &new).await?
            };
            let answer = ShipmentView::new(shipment_type.as_str(), &header, &parts, created_at);
            Ok(answer)
        })
        .await
    })
    .await
}

/// When the same shipment was reported; another one under its number is refused.
async fn reported_before(
    conn: &mut AsyncPgConnection,
    new: &NewShipment<'_>,
) -> Result<Timestamp, Error> {
    let known = store::find(conn, new.merchant, &new.header.asn_number, Lock::None).await?;
    let known = known.filter(|known| known.digest == new.digest.as_bytes());
    known.map(|known| known.created_at).ok_or_else(|| used(new.header))
}

fn used(header: &OutboundHeader) -> Error {
    let number = &header.asn_number;
    Error::field("$.asn_number", format!("{number}, or a number made of it, is used already"))
}

/// Changes a shipment's date or status, and tells the merchant if that changed anything.
pub(crate) async fn change(
    app: &App,
    merchant: &MerchantId,
    number: &str,
    change: ShipmentChange,
) -> Result<ShipmentView, Error> {
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let mut known = store::find(conn, merchant, number, Lock::Change)
            .await?
            .ok_or_else(|| missing(number))?;
        let parts = if known.header.change(change, now)? {
            let parts = store::parts(conn, merchant, number).await?;
            store::change(conn, merchant, &known.header, now).await?;
            known.updated_at = now;
            tell(app, conn, merchant, &known.header, &parts, now).await?;
            parts
        } else {
            store::part_numbers(conn, merchant, number).await?
        };
        Ok(ShipmentView::of(&known, &parts))
    })
    .await
}

/// A shipment as it stands.
pub(crate) async fn show(
    app: &App,
    merchant: &MerchantId,
    number: &str,
) -> Result<ShipmentView, Error> {
    let mut conn = app.pool.get().await?;
    let known = store::find(&mut conn, merchant, number, Lock::None).await?;
    let known = known.ok_or_else(|| missing(number))?;
    let parts = store::part_numbers(&mut conn, merchant, number).await?;
    Ok(ShipmentView::of(&known, &parts))
}

fn missing(number: &str) -> Error {
    Error::NoSuch { what: "outbound shipment", number: number.to_owned() }
}

/// Writes one message for each part, all on the shipment's ordering_key.
async fn tell(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &MerchantId,
    header: &OutboundHeader,
    parts: &[AsnPart],
    now: Timestamp,
) -> Result<(), Error> {
    let mut messages = Vec::with_capacity(parts.len());
    for part in parts {
        messages.push(NewMessage {
            merchant: merchant.clone(),
            kind: MessageKind::OutboundAsn,
            ordering_key: Some(format!("asn:{}", header.asn_number)),
            event: format!("outbound_asn.{}", header.status.as_str()),
            body: header.body(&part.asn_number, &part.cartons)?.into(),
        });
    }
    app.deliveries.append(conn, now, &messages).await?;
    Ok(())
}
