//! Decisions about returns that wait for review, by the merchant or by the deadline of the review.
//!
//! An approval does what otherwise happens when a return is started: its message, and the events about its exchanges. A
//! decline or a cancellation before the decision frees the units, and lets their orders have another exchange.
//!
//! See docs/decisions/return-reviews.md.

use diesel_async::AsyncPgConnection;
use domain::merchant::{Merchant, ReviewDecision};
use domain::order::Order;
use domain::returns::{Change, DecidedReview, ReturnConfirmed, Rma, UnitId};
use platform::Timestamp;
use platform::database::DatabaseError;
use platform::idempotency::{self, IdempotencyKey};
use serde_json::json;

use crate::App;
use crate::error::Error;
use crate::exchanges::confirmations::confirmations;
use crate::projection;
use crate::return_changes::{self, Cause};
use crate::returns::{find, lock, refused};
use crate::shoppers::view::ReturnView;
use crate::store;
use crate::store::orders::RowLock;

/// A merchant's decision about a return.
pub(crate) struct NewDecision<'a> {
    pub(crate) decision: ReviewDecision,
    pub(crate) note: Option<String>,
    pub(crate) key: Option<IdempotencyKey<'a>>,
}

/// Approves or declines a return and returns the response. A repeated request gets the first response.
#[tracing::instrument(skip_all, fields(rma.id = rma_identifier))]
pub(crate) async fn decide(
    app: &App,
    merchant: &Merchant,
    actor: &str,
    rma_identifier: &str,
    new: &NewDecision<'_>,
) -> Result<String, Error> {
    app.pool
        .transaction_of(merchant.identifier.as_str(), async |conn| {
            let now = app.clock.now();
            idempotency::run(conn, new.key.as_ref(), now, async |conn| {
                let rma = apply(app, conn, merchant, (actor, rma_identifier), new, now).await?;
                Ok::<_, Error>(ReturnView::new(rma, Some(merchant), None))
            })
            .await
        })
        .await
}

async fn apply(
    app: &App,
    conn: &mut AsyncPgConnection,
    merchant: &Merchant,
    (actor, rma_identifier): (&str, &str),
    NewDecision { decision, note, .. }: &NewDecision<'_>,
    now: Timestamp,
) -> Result<Rma, Error> {
    let id = &merchant.identifier;
    let rma = find(conn, merchant, rma_identifier, None).await?;
    let orders = rma.units.iter().map(|it| (id.as_str(), it.id.order_identifier.as_str()));
    let orders = store::orders::find(conn, &orders.collect(), RowLock::Update).await?;
    let orders: Vec<_> = orders.into_iter().map(|(_, projected)| projected).collect();
    let mut rma = lock(conn, merchant, rma_identifier).await?;
    let by = Some(actor.to_owned());
    let decided = DecidedReview { decision: *decision, at: now, by, note: note.clone() };
    let change = rma.decide(decided).map_err(|it| refused(rma_identifier, it))?;
    let detail = json!({ "note": note });
    let cause = Cause { actor, action: action(*decision), detail };
    return_changes::record(conn, &app.messages, &rma, &change, cause, now).await?;
    match decision {
        ReviewDecision::Approve => {
            let order =
                |name: &str| orders.iter().map(|it| &it.order).find(|it| it.identifier == name);
            let confirmed = confirmed(merchant, &rma, order, now);
            app.outbox.append(conn, now, confirmed).await?;
        }
        ReviewDecision::Decline => {
            release_exchanges(conn, &rma, &change).await?;
            projection::reconcile_again(conn, id, orders, now).await?;
        }
    }
    Ok(rma)
}

/// The name of a decision in the timeline.
pub(crate) fn action(decision: ReviewDecision) -> &'static str {
    match decision {
        ReviewDecision::Approve => "approval",
        ReviewDecision::Decline => "decline",
    }
}

/// The events about the exchanges of a return that starts; none while it waits for review.
pub(crate) fn confirmed<'a>(
    merchant: &Merchant,
    rma: &Rma,
    order: impl Fn(&str) -> Option<&'a Order>,
    now: Timestamp,
) -> Vec<ReturnConfirmed> {
    if rma.is_in_review() { Vec::new() } else { confirmations(merchant, rma, order, now) }
}

/// The units of a change whose exchange is not requested after all.
pub(crate) fn unrequested_exchanges(rma: &Rma, change: &Change) -> Vec<UnitId> {
    let left = rma.units.iter().filter(|unit| change.units.contains(&unit.id));
    left.filter(|unit| unit.is_for_exchange()).map(|unit| unit.id.clone()).collect()
}

/// Lets the orders of units that left a return before its decision have another exchange.
pub(crate) async fn release_exchanges(
    conn: &mut AsyncPgConnection,
    rma: &Rma,
    change: &Change,
) -> Result<(), DatabaseError> {
    let units = unrequested_exchanges(rma, change);
    if units.is_empty() {
        return Ok(());
    }
    store::units::release_exchange(conn, &rma.merchant, &rma.rma_identifier, &units).await
}
