//! Inbound ASNs: registered, and changed until the first unit of them is received.

use diesel_async::AsyncConnection as _;
use domain::access::MerchantId;
use domain::json::Digest;
use domain::warehouse::{InboundAsn, InboundHeader, InboundLine};
use platform::{Timestamp, idempotency};

use crate::App;
use crate::error::Error;
use crate::http::inbound::{AsnView, Registered};
use crate::request::Request;
use crate::store::inbound::{self as store, NewAsn};

/// An ASN taken apart for storing.
struct Parts {
    number: String,
    header: InboundHeader,
    lines: Vec<InboundLine>,
    units: i64,
}

impl From<InboundAsn> for Parts {
    fn from(asn: InboundAsn) -> Self {
        let (units, header) = (asn.units(), asn.header.clone());
        let lines = asn.into_lines().collect();
        Self { number: header.asn_number.to_string(), header, lines, units }
    }
}

impl Parts {
    fn of<'a>(&'a self, merchant: &'a MerchantId, digest: Digest, at: Timestamp) -> NewAsn<'a> {
        let Self { number, header, lines, units } = self;
        NewAsn { merchant, number, header, lines, units: *units, digest, at }
    }
}

/// Stores an ASN, unless it was registered before.
pub(crate) async fn register(
    app: &App,
    request: Request<'_>,
    asn: InboundAsn,
) -> Result<String, Error> {
    let parts = Parts::from(asn);
    let new = parts.of(request.merchant, request.digest, request.at);
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
            let created_at = if store::insert(conn, &new).await? {
                store::insert_lines(conn, &new).await?;
                new.at
            } else {
                let known = store::find(conn, new.merchant, new.number).await?;
                let known = known.filter(|known| known.digest == new.digest.as_bytes());
                known.map(|known| known.updated_at).ok_or_else(|| used(new.number))?
            };
            let answer = Registered::new(new.header, new.lines.len(), new.units, created_at);
            Ok(answer)
        })
        .await
    })
    .await
}

fn used(number: &str) -> Error {
    Error::field("$.asn_number", format!("{number} is used already"))
}

/// Puts an ASN in the place of the one with its number, while nothing of it was received.
pub(crate) async fn change(
    app: &App,
    merchant: &MerchantId,
    number: &str,
    asn: InboundAsn,
    digest: Digest,
) -> Result<AsnView, Error> {
    let parts = Parts::from(asn);
    if parts.number != number {
        return Err(Error::field("$.asn_number", format!("must be {number}, as in the address")));
    }
    let new = parts.of(merchant, digest, app.clock.now());
    let mut conn = app.pool.get().await?;
    conn.transaction(async |conn| {
        store::lock(conn, merchant, number).await?;
        let known = store::find(conn, merchant, number).await?.ok_or_else(|| missing(number))?;
        if known.digest != digest.as_bytes() {
            if known.received > 0 {
                return Err(Error::field("$.asn_number", "units of it were received already"));
            }
            store::replace(conn, &new).await?;
        }
        let known = store::find(conn, merchant, number).await?.ok_or_else(|| missing(number))?;
        Ok(AsnView::new(known, store::lines(conn, merchant, number).await?))
    })
    .await
}

/// An ASN with what is expected and what was received.
pub(crate) async fn show(app: &App, merchant: &MerchantId, number: &str) -> Result<AsnView, Error> {
    let mut conn = app.pool.get().await?;
    let known = store::find(&mut conn, merchant, number).await?.ok_or_else(|| missing(number))?;
    Ok(AsnView::new(known, store::lines(&mut conn, merchant, number).await?))
}

fn missing(number: &str) -> Error {
    Error::NoSuch { what: "inbound ASN", number: number.to_owned() }
}
