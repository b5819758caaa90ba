//! Inbound ASNs. A merchant or a warehouse registers an ASN and can change it until its first unit is
//! received.

use std::collections::HashSet;

use actix_web::HttpRequest;
use api::warehouse::AsnSummary;
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use domain::erasure::is_report_about;
use domain::json::Digest;
use domain::warehouse::{Identifier, InboundAsn, InboundHeader, InboundLine};
use platform::http::{PageLimit, reserve_for_response};
use platform::{Problem, Timestamp, idempotency};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::App;
use crate::erasing::{erase_if, erased_orders};
use crate::error::Error;
use crate::list_position::{ListPosition, cursor_of};
use crate::record_keys;
use crate::request::Request;
use crate::store::inbound::{self as store, NewAsn, StoredAsn};
use crate::store::record_keys as keys_store;

/// A registered ASN.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Registered {
    asn_number: Identifier,
    lines: usize,
    /// Number of units expected.
    expected: i64,
    registered_at: DateTime<Utc>,
}

impl Registered {
    pub(crate) fn new(
        header: &InboundHeader,
        lines: usize,
        expected: i64,
        registered_at: DateTime<Utc>,
    ) -> Self {
        Self { asn_number: header.asn_number.clone(), lines, expected, registered_at }
    }
}

/// An ASN with the numbers of units expected and received.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AsnView {
    #[serde(flatten)]
    header: InboundHeader,
    expected: i64,
    received: i64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    lines: Vec<LineView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineView {
    #[serde(flatten)]
    line: InboundLine,
    received: i64,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AsnPage {
    /// Sorted by merchant and number.
    inbound_asns: Vec<AsnSummary>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl AsnView {
    pub(crate) fn new(stored: StoredAsn, lines: Vec<(InboundLine, i64)>) -> Self {
        let StoredAsn { header, units, received, created_at, updated_at, .. } = stored;
        let lines = lines.into_iter().map(|(line, received)| LineView { line, received }).collect();
        Self { header, expected: units, received, created_at, updated_at, lines }
    }
}

impl From<StoredAsn> for AsnSummary {
    fn from(stored: StoredAsn) -> Self {
        let StoredAsn { merchant, header, lines, units, received, .. } = stored;
        Self {
            merchant,
            asn_number: header.asn_number,
            shipment_identifier: header.shipment_identifier,
            lines,
            expected: units,
            received,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

#[derive(Clone)]
struct AsnColumns {
    number: String,
    header: InboundHeader,
    lines: Vec<InboundLine>,
    units: i64,
}

impl From<InboundAsn> for AsnColumns {
    fn from(asn: InboundAsn) -> Self {
        let units = asn.units();
        let header = asn.header.clone();
        let lines = asn.into_lines().collect();
        Self { number: header.asn_number.to_string(), header, lines, units }
    }
}

impl AsnColumns {
    /// The ASN after an erasure of these orders: all lines of an ASN that is about the shopper are erased, and
    /// otherwise the lines that are.
    fn without_erased(self, names: &HashSet<&str>) -> Result<Self, Error> {
        if names.is_empty() {
            return Ok(self);
        }
        let is_of_shopper = is_report_about(&serde_json::to_value(&self.header)?, names);
        let is_named = |value: &Value| is_of_shopper || is_report_about(value, names);
        let lines = self.lines.into_iter().map(|line| erase_if(line, is_named));
        let lines = lines.collect::<Result<_, _>>()?;
        Ok(Self { header: erase_if(self.header, is_named)?, lines, ..self })
    }

    fn new_asn<'a>(
        &'a self,
        merchant: &'a MerchantId,
        digest: Digest,
        at: Timestamp,
    ) -> NewAsn<'a> {
        let Self { number, header, lines, units } = self;
        NewAsn { merchant, number, header, lines, units: *units, digest, at }
    }
}

/// Stores an ASN. Registering the same ASN again returns the first response.
pub(crate) async fn register(
    app: &App,
    request: Request<'_>,
    asn: InboundAsn,
) -> Result<String, Error> {
    let merchant = request.merchant;
    let columns = AsnColumns::from(asn);
    let keys = record_keys::of_inbound_asn(&columns.header, &columns.lines);
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let erased = erased_orders(conn, merchant, &keys).await?;
            let columns = columns.clone().without_erased(&erased.after(merchant, request.at))?;
            let new = columns.new_asn(merchant, request.digest, request.at);
            idempotency::run(conn, request.key.as_ref(), request.at, async |conn| {
                let created_at = if store::insert(conn, &new).await? {
                    store::insert_lines(conn, &new).await?;
                    keys_store::insert(conn, &[(merchant, &keys)], new.at).await?;
                    new.at
                } else {
                    let stored = store::find(conn, new.merchant, new.number).await?;
                    let stored = stored.filter(|stored| stored.digest == new.digest.as_bytes());
                    stored
                        .map(|stored| stored.updated_at)
                        .ok_or_else(|| number_taken(new.number))?
                };
                Ok(Registered::new(new.header, new.lines.len(), new.units, created_at))
            })
            .await
        })
        .await
}

fn number_taken(number: &str) -> Error {
    Error::field("$.asn_number", format!("{number} is already used"))
}

/// Replaces the ASN with this number, unless one of its units was received.
pub(crate) async fn change(
    app: &App,
    merchant: &MerchantId,
    number: &str,
    asn: InboundAsn,
    digest: Digest,
) -> Result<AsnView, Error> {
    let columns = AsnColumns::from(asn);
    if columns.number != number {
        return Err(Error::field("$.asn_number", format!("must be {number}, as in the URL")));
    }
    let at = app.clock.now();
    let keys = record_keys::of_inbound_asn(&columns.header, &columns.lines);
    app.pool
        .transaction_of(merchant.as_str(), async |conn| {
            let erased = erased_orders(conn, merchant, &keys).await?;
            let columns = columns.clone().without_erased(&erased.after(merchant, at))?;
            let new = columns.new_asn(merchant, digest, at);
            store::lock(conn, merchant, number).await?;
            let stored =
                store::find(conn, merchant, number).await?.ok_or_else(|| not_found(number))?;
            if stored.digest != digest.as_bytes() {
                if stored.received > 0 {
                    return Err(Error::field(
                        "$.asn_number",
                        "units of this ASN were already received",
                    ));
                }
                store::replace(conn, &new).await?;
                // The numbers that the ASN had before still find it.
                keys_store::insert(conn, &[(merchant, &keys)], at).await?;
            }
            let stored =
                store::find(conn, merchant, number).await?.ok_or_else(|| not_found(number))?;
            Ok(AsnView::new(stored, store::lines(conn, merchant, number).await?))
        })
        .await
}

/// Shows an ASN with the numbers of units expected and received.
pub(crate) async fn show(
    app: &App,
    request: &HttpRequest,
    merchant: &MerchantId,
    number: &str,
) -> Result<AsnView, Problem> {
    let mut conn = app.pool.get().await?;
    let stored =
        store::find(&mut conn, merchant, number).await?.ok_or_else(|| not_found(number))?;
    // Reserved before the lines are loaded: an ASN can have 20,000 lines and 16 MB.
    let bytes = store::lines_bytes(&mut conn, merchant, number).await?;
    reserve_for_response(request, usize::try_from(bytes).unwrap_or(usize::MAX))?;
    Ok(AsnView::new(stored, store::lines(&mut conn, merchant, number).await?))
}

/// Lists the ASNs of a merchant or of all merchants, sorted by merchant and number.
pub(crate) async fn list(
    app: &App,
    merchant: Option<&MerchantId>,
    after: &ListPosition,
    limit: PageLimit,
) -> Result<AsnPage, Error> {
    let mut conn = app.pool.reader(merchant.map(MerchantId::as_str)).await?;
    let mut found = store::page(&mut conn, merchant, after, limit.rows()).await?;
    let next = limit.next(&mut found, |last| cursor_of(&last.merchant, &last.header.asn_number));
    Ok(AsnPage { inbound_asns: found.into_iter().map(AsnSummary::from).collect(), next })
}

fn not_found(number: &str) -> Error {
    Error::NotFound { resource: "inbound ASN", number: number.to_owned() }
}
