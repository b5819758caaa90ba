//! Pauses, resumes and stops replays.

use actix_web::{HttpResponse, post, web};
use api::delivery::{ReplayState, ReplayView};
use platform::Problem;
use platform::http::ErrorBody;
use platform::identity::Caller;
use uuid::Uuid;

use super::Error;
use super::access::replayable_merchant;
use super::replay_view::show;
use super::replays::find;
use crate::Deliveries;
use crate::store;

/// Pause a replay
///
/// It sends no further deliveries until it is resumed. Deliveries that are pending already are sent.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["replay"])), params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The replay is paused", body = ReplayView),
        (status = 409, description = "The replay is stopped or finished", body = ErrorBody),
    )
)]
#[post("/v1/replays/{id}/pause")]
pub(crate) async fn pause_replay(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    change(&deliveries, &caller, *id, ReplayState::Paused).await
}

/// Resume a replay
///
/// It continues where it was paused.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["replay"])), params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The replay is running", body = ReplayView),
        (status = 409, description = "The replay is stopped or finished", body = ErrorBody),
    )
)]
#[post("/v1/replays/{id}/resume")]
pub(crate) async fn resume_replay(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    change(&deliveries, &caller, *id, ReplayState::Running).await
}

/// Stop a replay
///
/// It cannot be resumed. Deliveries that are pending already are sent.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["replay"])), params(("id" = Uuid, Path)),
    responses(
        (status = 200, description = "The replay is stopped", body = ReplayView),
        (status = 409, description = "The replay is finished", body = ErrorBody),
    )
)]
#[post("/v1/replays/{id}/stop")]
pub(crate) async fn stop_replay(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    change(&deliveries, &caller, *id, ReplayState::Stopped).await
}

/// Changes the state of a replay. A replay that is in that state already stays so.
async fn change(
    deliveries: &Deliveries,
    caller: &Caller,
    id: Uuid,
    state: ReplayState,
) -> Result<HttpResponse, Problem> {
    let merchant = replayable_merchant(caller, None)?;
    let engine = &deliveries.0;
    let found = find(&mut *engine.pool.get().await?, merchant.as_ref(), id).await?;
    let owner = found.filter.merchant.as_deref().unwrap_or_default();
    let now = engine.clock.now();
    let change = (state, caller.actor());
    let changed = engine.pool.transaction_of(owner, async |conn| {
        store::change_replay_state(conn, now, id, change).await
    });
    if let Some(changed) = changed.await? {
        tracing::info!(replay.id = %id, by = caller.actor(), "replay {id} is {state}");
        if state == ReplayState::Running {
            engine.replayed.notify_one();
        }
        return Ok(HttpResponse::Ok().json(show(changed)?));
    }
    let replay = find(&mut *engine.pool.get().await?, merchant.as_ref(), id).await?;
    if replay.state == state {
        Ok(HttpResponse::Ok().json(replay))
    } else {
        Err(Error::ReplayIs(id, replay.state).into())
    }
}
