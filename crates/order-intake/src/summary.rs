//! The summary of a merchant's orders.
//!
//! See docs/decisions/order-summary.md.

use actix_web::HttpRequest;
use chrono::{DateTime, TimeDelta, Utc};
use domain::access::MerchantId;
use platform::Problem;
use platform::database::DatabaseError;
use platform::http::reserve_for_response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::merchant_activity::{OrderCounts, TimeSpan, start_of_hour};
use crate::rejected_order::RejectedOrder;
use crate::store;

/// Orders are counted up to this number.
const MAX_COUNTED: i64 = 100_000;

/// The orders of a merchant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderSummary {
    merchant: MerchantId,
    /// Number of stored orders, counted up to 100,000.
    count: i64,
    /// The `created_at` of the oldest and the newest order; null if there is none.
    created_at: Option<TimeSpan>,
    /// The times at which the first and the last order were received; null if there is none.
    received_at: Option<TimeSpan>,
    last_24_hours: RecentOrders,
    /// The last rejected orders, at most 100, newest first. A message with many invalid orders is shown
    /// with the first ten.
    rejections: Vec<RejectedOrder>,
}

/// The orders of the current hour and the 23 hours before it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecentOrders {
    since: DateTime<Utc>,
    /// Orders of accepted messages.
    received: i64,
    /// Received orders that were new or changed.
    changed: i64,
    /// Orders of rejected messages.
    rejected: i64,
}

/// Summarizes a merchant's orders. Orders of the last second may be missing.
pub(crate) async fn summarize(
    app: &App,
    request: &HttpRequest,
    merchant: &MerchantId,
) -> Result<OrderSummary, Problem> {
    let since = start_of_hour(app.clock.now()) - TimeDelta::hours(23);
    let mut conn = app.pool.reader().await?;
    // One snapshot, so that the parts of the summary agree.
    let (count, times, counts, rejections) = conn
        .build_transaction()
        .read_only()
        .repeatable_read()
        .run(async |conn| {
            let count = store::count_orders(conn, merchant, MAX_COUNTED).await?;
            let times = store::order_times(conn, merchant).await?;
            let counts = store::counts_since(conn, merchant, since).await?;
            let rejections = store::rejected_orders(conn, merchant).await?;
            Ok::<_, DatabaseError>((count, times, counts, rejections))
        })
        .await?;
    let OrderCounts { received, changed, rejected } = counts;
    reserve_for_response(request, bytes(&rejections))?;
    Ok(OrderSummary {
        merchant: merchant.clone(),
        count,
        created_at: times.map(|times| times.created),
        received_at: times.map(|times| times.received),
        last_24_hours: RecentOrders { since, received, changed, rejected },
        rejections,
    })
}

/// The approximate size of rejections in a response.
fn bytes(rejections: &[RejectedOrder]) -> usize {
    let errors = rejections.iter().flat_map(|rejection| &rejection.errors);
    errors.map(|error| error.field.len() + error.detail.as_ref().map_or(0, String::len)).sum()
}
