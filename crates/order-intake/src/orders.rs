//! Stored orders, as merchants read them.

use actix_web::HttpRequest;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use domain::access::MerchantId;
use platform::http::{PageLimit, reserve_for_response};
use platform::{ErrorKind, Failure, Problem};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::App;
use crate::store::{self, Search};

/// A stored order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrder {
    pub(crate) identifier: String,
    #[schema(example = "Shipped")]
    pub(crate) status: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    /// The time at which this snapshot was received.
    pub(crate) received_at: DateTime<Utc>,
    /// The order as it was published, including unknown fields.
    #[schema(value_type = Object)]
    pub(crate) document: Box<RawValue>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredOrders {
    /// Sorted by identifier.
    orders: Vec<StoredOrder>,
    /// Cursor of the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("there is no order {0}")]
struct NoSuchOrder(String);

impl Failure for NoSuchOrder {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Missing
    }
}

/// Lists a merchant's orders, sorted by identifier.
pub(crate) async fn list(
    app: &App,
    request: &HttpRequest,
    merchant: &MerchantId,
    search: &Search,
    limit: PageLimit,
) -> Result<StoredOrders, Problem> {
    let mut conn = app.pool.get().await?;
    let found = store::search(&mut conn, merchant, search, limit.rows()).await?;
    let (mut orders, is_truncated) = found;
    let next =
        limit.next_of(&mut orders, is_truncated, |last| URL_SAFE_NO_PAD.encode(&last.identifier));
    // Reserved before the connection is released, so the pool bounds the pages without a reservation.
    reserve_for_response(request, orders.iter().map(|order| order.document.get().len()).sum())?;
    Ok(StoredOrders { orders, next })
}

/// Finds one of a merchant's orders.
pub(crate) async fn find(
    app: &App,
    request: &HttpRequest,
    merchant: &MerchantId,
    identifier: String,
) -> Result<StoredOrder, Problem> {
    let mut conn = app.pool.get().await?;
    let search = Search { identifier: Some(identifier.clone()), ..Search::default() };
    let (found, _) = store::search(&mut conn, merchant, &search, 1).await?;
    let order = found.into_iter().next().ok_or(NoSuchOrder(identifier))?;
    reserve_for_response(request, order.document.get().len())?;
    Ok(order)
}
