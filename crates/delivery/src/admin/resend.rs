//! Sends one delivery again, or sooner.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, post, web};
use api::delivery::{DeliveryView, Filter, ReplayState, State, Waiting, WaitingReason};
use diesel_async::AsyncPgConnection;
use domain::access::MerchantId;
use platform::Problem;
use platform::http::{ErrorBody, Query};
use platform::identity::Caller;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::Error;
use super::access::{includes, replayable_merchant};
use super::list::show;
use super::replays::{DEFAULT_PER_SECOND, new_replay};
use super::waiting::waiting;
use crate::Deliveries;
use crate::store::{self, DeliveryRow, Replay, Superseded};

/// Options for the replay of one delivery.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayOptions {
    /// Replay even if a newer message of its ordering key was delivered.
    #[serde(default)]
    force: bool,
    /// The `replay_number` of the newest attempt that you have seen. If the delivery was replayed and attempted
    /// since, nothing is sent.
    #[param(minimum = 0)]
    replay_number: Option<i32>,
}

/// Replay a delivery
///
/// Sends the message again like a new one, under the same id, and purges its dead letter. Replaying a
/// delivery that was replayed and not attempted since changes nothing.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["replay"])), params(("id" = Uuid, Path), ReplayOptions),
    responses(
        (status = 202, description = "The delivery is pending again", body = DeliveryView),
        (status = 409, description = "The delivery is pending already, superseded, or was replayed since `replay_number`", body = ErrorBody),
    )
)]
#[post("/v1/deliveries/{id}/replay")]
pub(crate) async fn replay_delivery(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
    query: Query<ReplayOptions>,
) -> Result<HttpResponse, Problem> {
    let merchant = replayable_merchant(&caller, None)?;
    let id = id.into_inner();
    let engine = &deliveries.0;
    let mut delivery = find(&mut *engine.pool.get().await?, merchant.as_ref(), id).await?;
    if delivery.state() == State::Pending && !delivery.is_replayed() {
        return Err(Error::Pending(id).into());
    }
    if delivery.state() != State::Pending {
        let is_replayed = replay_settled(&deliveries, &caller, &delivery, &query).await?;
        delivery = find(&mut *engine.pool.get().await?, merchant.as_ref(), id).await?;
        // Another request may have replayed the delivery at the same time.
        if !is_replayed && delivery.state() != State::Pending {
            return Err(Error::Superseded(id).into());
        }
    }
    let rows = [delivery];
    let waiting = waiting(engine, &mut *engine.pool.get().await?, &rows).await?.remove(&id);
    let [delivery] = rows;
    Ok(HttpResponse::Accepted().json(show(delivery, waiting)))
}

/// Makes a settled delivery ready and records the caller, as for a replay by filter. Returns false if the
/// delivery is superseded or pending. A delivery that was replayed since the caller read it is an error: the
/// message may have been delivered.
async fn replay_settled(
    deliveries: &Deliveries,
    caller: &Caller,
    delivery: &DeliveryRow,
    options: &ReplayOptions,
) -> Result<bool, Error> {
    let ReplayOptions { force, replay_number: seen } = *options;
    let id = delivery.id;
    let engine = &deliveries.0;
    let now = engine.clock.now();
    let merchant = Some(delivery.merchant.clone());
    let filter = Filter { delivery: Some(id), merchant, ..Filter::default() };
    let replay = Replay {
        state: ReplayState::Finished.to_string(),
        matched: 1,
        last_delivery_id: id,
        replayed: 1,
        finished_at: Some(now),
        ..new_replay(caller, &filter, force, DEFAULT_PER_SECOND, now)?
    };
    let is_replayed = engine
        .pool
        .transaction_of(&delivery.merchant, async |conn| {
            let superseded = Superseded::forced(force);
            if store::make_settled_ready(conn, now, &[id], superseded).await?.is_empty() {
                return Ok(false);
            }
            // After the row was inserted, no other replay can come between.
            if let Some(seen) = seen
                && store::replay_number(conn, id).await? != seen.saturating_add(1)
            {
                return Err(Error::ReplayedSince(id));
            }
            store::insert_replay(conn, &replay).await?;
            Ok(true)
        })
        .await?;
    if is_replayed {
        engine.wake.notify_one();
        engine.replayed.notify_one();
        tracing::info!(delivery.id = %id, by = caller.actor(), "replayed delivery {id}");
    }
    Ok(is_replayed)
}

/// Retry a delivery now
///
/// Sends a delivery that waits for its next attempt without waiting for that time.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["replay"])), params(("id" = Uuid, Path)),
    responses(
        (status = 202, description = "The delivery is due now"),
        (
            status = 409, body = ErrorBody,
            description = "The delivery is settled, is being sent, waits behind another, or its endpoint is paused",
        ),
    )
)]
#[post("/v1/deliveries/{id}/retry")]
pub(crate) async fn retry_delivery(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    let merchant = replayable_merchant(&caller, None)?;
    let id = id.into_inner();
    let engine = &deliveries.0;
    let mut conn = engine.pool.get().await?;
    let delivery = find(&mut conn, merchant.as_ref(), id).await?;
    let owner = delivery.merchant.clone();
    let cannot = |detail: &str| Error::CannotRetry(id, detail.to_owned());
    let settled = "it is settled, replay it instead";
    match waiting(engine, &mut conn, &[delivery]).await?.remove(&id) {
        None => return Err(cannot(settled).into()),
        Some(Waiting { reason, detail }) => match reason {
            WaitingReason::Sending
            | WaitingReason::EndpointPaused
            | WaitingReason::BehindAnother => return Err(cannot(&detail).into()),
            WaitingReason::NextAttempt
            | WaitingReason::EndpointFailing
            | WaitingReason::WindowFull
            | WaitingReason::Due => {}
        },
    }
    drop(conn);
    let now = engine.clock.now();
    let retried =
        engine.pool.transaction_of(&owner, async |conn| store::retry_now(conn, now, id).await);
    if !retried.await? {
        return Err(cannot("it is being sent").into());
    }
    engine.wake.notify_one();
    tracing::info!(delivery.id = %id, by = caller.actor(), "retrying delivery {id} now");
    Ok(HttpResponse::Accepted().finish())
}

/// Finds a delivery that a caller limited to `merchant` may send.
async fn find(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<DeliveryRow, Problem> {
    let delivery = store::find(conn, id).await?.ok_or(Error::NoDelivery(id))?;
    if !includes(merchant, Some(&delivery.merchant)) {
        return Err(Error::NoDelivery(id).into());
    }
    Ok(delivery)
}
