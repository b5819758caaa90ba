//! Outbound shipments. The merchant receives a shipment when it is reported and whenever it changes.

use chrono::{DateTime, Utc};
use delivery::NewMessage;
use diesel_async::{AsyncConnection as _, AsyncPgConnection};
use domain::access::MerchantId;
use domain::message_kind::MessageKind;
use domain::warehouse::{AsnPart, AsnStatus, OutboundHeader, OutboundShipment, ShipmentChange};
use platform::http::Page;
use platform::{Timestamp, idempotency};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::App;
use crate::error::Error;
use crate::request::Request;
use crate::store::outbound::{self as store, Lock, NewShipment, StoredShipment};

/// A shipment and the messages that it is split into.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ShipmentView {
    #[schema(example = "ASN-1001")]
    asn_number: String,
    #[schema(example = "freight")]
    shipment_type: String,
    status: AsnStatus,
    ship_date: DateTime<Utc>,
    shipment_identifier: String,
    channel: String,
    units: usize,
    /// In order of delivery.
    messages: Vec<MessageView>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct MessageView {
    /// The shipment's number, with a suffix if the shipment has several messages.
    asn_number: String,
    units: usize,
}

/// A shipment in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentSummary {
    asn_number: String,
    shipment_type: String,
    status: AsnStatus,
    ship_date: DateTime<Utc>,
    units: i32,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShipmentPage {
    /// Sorted by number.
    outbound_shipments: Vec<ShipmentSummary>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl ShipmentView {
    /// The view of a shipment that was just reported.
    pub(crate) fn new(
        shipment_type: &str,
        header: &OutboundHeader,
        parts: &[AsnPart],
        created_at: DateTime<Utc>,
    ) -> Self {
        let message =
            |part: &AsnPart| MessageView { asn_number: part.asn_number.clone(), units: part.units };
        Self {
            asn_number: header.asn_number.clone(),
            shipment_type: shipment_type.to_owned(),
            status: header.status,
            ship_date: header.ship_date,
            shipment_identifier: header.shipment_identifier.clone(),
            channel: header.channel.clone(),
            units: parts.iter().map(|part| part.units).sum(),
            messages: parts.iter().map(message).collect(),
            created_at,
            updated_at: created_at,
        }
    }

    /// The view of a stored shipment.
    pub(crate) fn from_stored(stored: &StoredShipment, parts: &[AsnPart]) -> Self {
        let StoredShipment { shipment_type, header, created_at, updated_at, .. } = stored;
        Self { updated_at: *updated_at, ..Self::new(shipment_type, header, parts, *created_at) }
    }
}

impl From<StoredShipment> for ShipmentSummary {
    fn from(stored: StoredShipment) -> Self {
        let StoredShipment { asn_number, shipment_type, header, units, .. } = stored;
        Self {
            asn_number,
            shipment_type,
            status: header.status,
            ship_date: header.ship_date,
            units,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

/// Stores a shipment and enqueues its messages. Reporting the same shipment again returns the first
/// response.
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
                store::lock_splitting(conn, merchant).await?;
            }
            let created_at = if store::insert(conn, &new).await? {
                if !store::insert_parts(conn, &new).await? {
                    return Err(number_taken(&header));
                }
                enqueue_messages(app, conn, merchant, &header, &parts, at).await?;
                at
            } else {
                first_reported_at(conn, &new).await?
            };
            let response = ShipmentView::new(shipment_type.as_str(), &header, &parts, created_at);
            Ok(response)
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
    let known = store::find(conn, new.merchant, &new.header.asn_number, Lock::None).await?;
    let known = known.filter(|known| known.digest == new.digest.as_bytes());
    known.map(|known| known.created_at).ok_or_else(|| number_taken(new.header))
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
    let now = app.clock.now();
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        let mut known = store::find(conn, merchant, number, Lock::Update)
            .await?
            .ok_or_else(|| not_found(number))?;
        let parts = if known.header.change(change, now)? {
            let parts = store::parts(conn, merchant, number).await?;
            store::change(conn, merchant, &known.header, now).await?;
            known.updated_at = now;
            enqueue_messages(app, conn, merchant, &known.header, &parts, now).await?;
            parts
        } else {
            store::part_numbers(conn, merchant, number).await?
        };
        Ok(ShipmentView::from_stored(&known, &parts))
    })
    .await
}

/// Shows a shipment.
pub(crate) async fn show(
    app: &App,
    merchant: &MerchantId,
    number: &str,
) -> Result<ShipmentView, Error> {
    let mut conn = app.pool.get().await?;
    let known = store::find(&mut conn, merchant, number, Lock::None).await?;
    let known = known.ok_or_else(|| not_found(number))?;
    let parts = store::part_numbers(&mut conn, merchant, number).await?;
    Ok(ShipmentView::from_stored(&known, &parts))
}

/// Lists a merchant's shipments, sorted by number.
pub(crate) async fn list(
    app: &App,
    merchant: &MerchantId,
    page: &Page,
) -> Result<ShipmentPage, Error> {
    let mut conn = app.pool.get().await?;
    let (mut found, is_truncated) =
        store::page(&mut conn, merchant, page.after(), page.limit.rows()).await?;
    let next = page.limit.next_of(&mut found, is_truncated, |stored| stored.asn_number.clone());
    Ok(ShipmentPage {
        outbound_shipments: found.into_iter().map(ShipmentSummary::from).collect(),
        next,
    })
}

fn not_found(number: &str) -> Error {
    Error::NotFound { resource: "outbound shipment", number: number.to_owned() }
}

/// Enqueues one message for each part. All have the ordering key of the shipment.
async fn enqueue_messages(
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
