//! The summary of a merchant's orders.
//!
//! See docs/decisions/order-summary.md.

use actix_web::HttpRequest;
use api::orders::{OrderSummary, RecentOrders, RejectedOrder};
use chrono::TimeDelta;
use domain::access::MerchantId;
use platform::Problem;
use platform::database::DatabaseError;
use platform::http::reserve_for_response;

use crate::App;
use crate::merchant_activity::{OrderCounts, start_of_hour};
use crate::store;

/// Orders are counted up to this number.
const MAX_COUNTED: i64 = 100_000;

/// Summarizes a merchant's orders. Orders of the last second may be missing.
pub(crate) async fn summarize(
    app: &App,
    request: &HttpRequest,
    merchant: &MerchantId,
) -> Result<OrderSummary, Problem> {
    let since = start_of_hour(app.clock.now()) - TimeDelta::hours(23);
    let mut conn = app.pool.reader(Some(merchant.as_str())).await?;
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
