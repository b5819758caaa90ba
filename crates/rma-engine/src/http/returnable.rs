//! `GET /v1/orders/{identifier}/returnable`: the units and choices that a shopper sees when
//! starting a return.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, get, web};
use platform::Problem;
use platform::http::{Query, reserve_for_response};
use platform::shopper_proof::Requester;
use serde::{Deserialize, Deserializer, de::Error as _};
use tokio::task::{JoinHandle, spawn_blocking};
use utoipa::IntoParams;

use super::{READERS, budgeted_response, json_for, merchant_or_shopper};
use crate::App;
use crate::blocking::off_worker;
use crate::error::Error;
use crate::orders::returnable::{ReturnableJson, ReturnableOrder};
use crate::orders::units::OrderUnits;
use crate::store::orders::RowLock;

const DEFAULT_LIMIT: usize = 200;
const MAX_LIMIT: usize = 500;

/// Page of an order's units.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReturnableQuery {
    /// Maximum number of units. Default for shoppers: 200
    #[param(value_type = Option<u16>, minimum = 1, maximum = 500)]
    limit: Option<UnitLimit>,
    /// The `next` of the previous page
    #[param(value_type = Option<String>)]
    after: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct UnitLimit(usize);

impl Default for UnitLimit {
    fn default() -> Self {
        Self(DEFAULT_LIMIT)
    }
}

impl<'de> Deserialize<'de> for UnitLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = usize::deserialize(deserializer)?;
        let error = || D::Error::custom(format!("limit must be between 1 and {MAX_LIMIT}"));
        (1..=MAX_LIMIT).contains(&limit).then_some(Self(limit)).ok_or_else(error)
    }
}

/// Show which units of an order can be returned
///
/// Each unit has its refund amount, or the reason that it cannot be returned. The response also has the
/// return methods and reasons of the merchant. Shoppers get pages, without amounts for a giftee. Other
/// callers get all units unless they set `limit`.
#[utoipa::path(
    tag = "returns",
    params(
        ("identifier" = String, Path, description = "The order's identifier in the merchant's systems"),
        ReturnableQuery,
        ("X-Service-Id" = Option<String>, Header),
        ("X-Shopper-Proof" = Option<String>, Header),
    ),
    responses((status = 200, description = "The order's units", body = ReturnableOrder)),
    security(("bearer" = ["returns"]), ("bearer" = ["read"]), ("bearer" = ["shopper"])),
)]
#[get("/v1/orders/{identifier}/returnable")]
pub(crate) async fn show_returnable(
    app: web::Data<App>,
    requester: Requester,
    identifier: web::Path<String>,
    query: Query<ReturnableQuery>,
    head: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let (merchant, shopper) = merchant_or_shopper(&app, &requester, &READERS)?;
    let identifier = identifier.into_inner();
    let is_giftee = shopper.map_or(Ok(false), |shopper| shopper.require(&identifier))?;
    let wanted = BTreeSet::from([identifier.as_str()]);
    let conn = app.pool.get().await?;
    let mut order_units =
        OrderUnits::load(&conn, &merchant.identifier, &wanted, RowLock::None).await?;
    let now = app.clock.now();
    order_units.load_shoppers(&conn, &merchant, now).await?;
    // The handler still holds its connection, so the pool size limits how many orders are loaded
    // before their memory is reserved.
    reserve_for_response(&head, order_units.response_bytes())?;
    drop(conn);
    let limit = query.limit.or(shopper.is_some().then(UnitLimit::default));
    if let Some(UnitLimit(limit)) = limit {
        let page = (query.after.unwrap_or(0), limit);
        // An order may have megabytes of tags, and a policy ten thousand values.
        let page = off_worker(move || {
            let page = ReturnableOrder::page(&order_units, &identifier, &merchant, now, page)?;
            json_for(&page, is_giftee)
        });
        return budgeted_response(&head, &page.await??);
    }
    let open = move || ReturnableJson::open(order_units, &identifier, merchant, now);
    let body = ReturnableBody::Ready(Some(Box::new(off_worker(open).await??)));
    Ok(HttpResponse::Ok().content_type("application/json").body(body))
}

/// A response body that is serialized while it is sent, outside of the HTTP workers. If the client leaves, at most one
/// further chunk is made.
enum ReturnableBody {
    /// `None` at the end.
    Ready(Option<Box<ReturnableJson>>),
    Working(JoinHandle<MadeChunk>),
}

/// The next chunk, and the JSON that makes those after it.
type MadeChunk = (Box<ReturnableJson>, Result<Option<Vec<u8>>, Error>);

impl MessageBody for ReturnableBody {
    type Error = Error;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        loop {
            match &mut *self {
                Self::Ready(json) => {
                    let Some(mut json) = json.take() else { return Poll::Ready(None) };
                    *self = Self::Working(spawn_blocking(move || {
                        let chunk = json.next_chunk();
                        (json, chunk)
                    }));
                }
                Self::Working(made) => {
                    let made = ready!(Pin::new(made).poll(context));
                    let (json, chunk) = match made {
                        Ok((json, chunk)) => (Some(json), chunk),
                        Err(error) => (None, Err(Error::Internal(error.to_string()))),
                    };
                    *self = Self::Ready(json.filter(|_| matches!(chunk, Ok(Some(_)))));
                    return Poll::Ready(chunk.transpose().map(|chunk| chunk.map(Bytes::from)));
                }
            }
        }
    }
}
