//! Sends one delivery again, or sooner.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, post, web};
use diesel_async::{AsyncConnection, AsyncPgConnection};
use domain::access::Scope;
use platform::http::ErrorBody;
use platform::identity::Caller;
use platform::{Problem, database::DatabaseError};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::Error;
use super::replays::{DEFAULT_PER_SECOND, new_replay};
use super::waiting::{Waiting, WaitingReason, waiting};
use crate::Deliveries;
use crate::store::{self, DeliveryRow, Filter, Replay, State, Superseded};

/// Options for the replay of one delivery.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayOptions {
    /// Replay even if a newer message of its ordering key was delivered.
    #[serde(default)]
    force: bool,
}

/// Replay a delivery
///
/// Sends the message again like a new one, under the same id, and purges its dead letter.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["operator"])), params(("id" = Uuid, Path), ReplayOptions),
    responses(
        (status = 202, description = "The delivery is pending again"), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, description = "The delivery is pending already, or superseded", body = ErrorBody),
    )
)]
#[post("/v1/deliveries/{id}/replay")]
pub(crate) async fn replay_delivery(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
    query: web::Query<ReplayOptions>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Operator)?;
    let (id, engine) = (id.into_inner(), &deliveries.0);
    let mut conn = engine.pool.get().await?;
    let delivery = find(&mut conn, &caller, id).await?;
    if delivery.state() == State::Pending {
        return Err(Error::Pending(id).into());
    }
    let now = engine.clock.now();
    let merchant = Some(delivery.merchant);
    let filter = Filter { delivery: Some(id), merchant, ..Filter::default() };
    // The row records who replayed the delivery, as for a replay by filter.
    let replay = Replay {
        last_delivery_id: id,
        replayed: 1,
        finished_at: Some(now),
        ..new_replay(&caller, &filter, query.force, DEFAULT_PER_SECOND, now)?
    };
    let requeued = conn
        .transaction(async |conn| {
            let superseded = Superseded::forced(query.force);
            let requeued = store::requeue(conn, now, &[id], superseded).await?;
            if !requeued.is_empty() {
                store::insert_replay(conn, &replay).await?;
            }
            Ok::<_, DatabaseError>(requeued)
        })
        .await?;
    if requeued.is_empty() {
        return Err(Error::Superseded(id).into());
    }
    engine.wake.notify_one();
    engine.replayed.notify_one();
    tracing::info!(delivery.id = %id, by = caller.actor(), "replayed delivery {id}");
    Ok(HttpResponse::Accepted().finish())
}

/// Retry a delivery now
///
/// Sends a delivery that waits for its next attempt without waiting for that time.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["operator"])), params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "The delivery is due now"), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (
            status = 409, body = ErrorBody,
            description = "The delivery is settled, is being sent, waits behind another, or its endpoint is paused or disabled",
        ),
    )
)]
#[post("/v1/deliveries/{id}/retry")]
pub(crate) async fn retry_delivery(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Operator)?;
    let (id, engine) = (id.into_inner(), &deliveries.0);
    let mut conn = engine.pool.get().await?;
    let delivery = find(&mut conn, &caller, id).await?;
    let cannot = |detail: &str| Error::CannotRetry(id, detail.to_owned());
    let settled = "it is settled, replay it instead";
    match waiting(engine, &mut conn, &[delivery]).await?.remove(&id) {
        None => return Err(cannot(settled).into()),
        Some(Waiting { reason, detail }) => match reason {
            WaitingReason::Sending
            | WaitingReason::EndpointDisabled
            | WaitingReason::EndpointPaused
            | WaitingReason::BehindAnother => return Err(cannot(&detail).into()),
            WaitingReason::NextAttempt
            | WaitingReason::EndpointFailing
            | WaitingReason::WindowFull
            | WaitingReason::Due => {}
        },
    }
    let now = engine.clock.now();
    if !conn.transaction(async |conn| store::retry_now(conn, now, id).await).await? {
        return Err(cannot("it is being sent").into());
    }
    engine.wake.notify_one();
    tracing::info!(delivery.id = %id, by = caller.actor(), "retrying delivery {id} now");
    Ok(HttpResponse::Accepted().finish())
}

/// Finds a delivery that the caller may send.
async fn find(
    conn: &mut AsyncPgConnection,
    caller: &Caller,
    id: Uuid,
) -> Result<DeliveryRow, Problem> {
    let delivery = store::find(conn, id).await?.ok_or(Error::NoDelivery(id))?;
    if caller.merchant_scope().is_some_and(|merchant| merchant.as_str() != delivery.merchant) {
        return Err(Error::NoDelivery(id).into());
    }
    Ok(delivery)
}
