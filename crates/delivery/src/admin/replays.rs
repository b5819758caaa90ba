//! Replays a delivery, or all that match a filter.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, post, web};
use chrono::{DateTime, Utc};
use diesel_async::AsyncConnection;
use domain::access::Scope;
use platform::http::{Body, ErrorBody, Sequential};
use platform::identity::Caller;
use platform::{Problem, Timestamp, database::DatabaseError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::{Error, check_filter, parse_merchant, readable_merchant};
use crate::Deliveries;
use crate::store::{self, Filter, Replay, State, Superseded};

const DEFAULT_PER_SECOND: i32 = 50;
const MAX_PER_SECOND: i32 = 1000;
/// A dry run counts no further.
const MAX_COUNTED: i64 = 100_000;

/// Options for the replay of one delivery.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayOptions {
    /// Replay even if a newer message of its ordering key was delivered.
    #[serde(default)]
    force: bool,
}

/// A request to replay deliveries.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReplay {
    /// Deliveries to replay: dead ones, or delivered ones if `state` is `delivered`.
    filter: Filter,
    /// Replay deliveries even if a newer message of their ordering key was delivered.
    #[serde(default)]
    force: bool,
    /// Count the deliveries that match, and replay none.
    #[serde(default)]
    dry_run: bool,
    /// 50 by default, at most 1000.
    per_second: Option<i32>,
}

/// A replay and its progress.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayView {
    id: Uuid,
    requested_by: String,
    filter: Filter,
    force: bool,
    per_second: i32,
    /// Deliveries that are pending again.
    replayed: i64,
    /// Deliveries that were superseded or pending already.
    skipped: i64,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

/// Result of a dry run.
#[derive(Serialize, ToSchema)]
pub(crate) struct DryRun {
    /// Number of deliveries that match, counted up to 100,000.
    matches: i64,
}

/// Replay a delivery
///
/// Sends the message again like a new one, under the same id, and purges its dead letter.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(("id" = Uuid, Path), ReplayOptions),
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
    let delivery = store::find(&mut conn, id).await?.ok_or(Error::NoDelivery(id))?;
    if caller.merchant_scope().is_some_and(|merchant| merchant.as_str() != delivery.merchant) {
        return Err(Error::NoDelivery(id).into());
    }
    if delivery.state() == State::Pending {
        return Err(Error::Pending(id).into());
    }
    let now = engine.clock.now();
    let filter = Filter { delivery: Some(id), ..Filter::default() };
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
    tracing::info!(delivery.id = %id, by = caller.claims.client_id, "replayed delivery {id}");
    Ok(HttpResponse::Accepted().finish())
}

/// Replay deliveries that match a filter
///
/// The replay runs in the background and continues after a restart. `GET /v1/replays/{id}` shows its
/// progress.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), request_body = NewReplay,
    responses(
        (status = 200, description = "Result of a dry run", body = DryRun),
        (status = 202, description = "The replay has started", body = ReplayView),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[post("/v1/replays")]
pub(crate) async fn start_replay(
    deliveries: web::Data<Deliveries>,
    Sequential(caller, Body(body)): Sequential<Caller, Body>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Operator)?;
    let engine = &deliveries.0;
    let NewReplay { mut filter, force, dry_run, per_second } =
        serde_json::from_slice(&body).map_err(|error| Error::Malformed(error.to_string()))?;
    check_filter(&filter)?;
    let merchant = parse_merchant(filter.merchant.as_deref())?;
    filter.merchant = readable_merchant(&caller, merchant)?.map(String::from);
    match filter.state {
        None => filter.state = Some(State::Dead),
        Some(State::Dead | State::Delivered) => {}
        Some(State::Pending) => {
            let message = "pending deliveries cannot be replayed";
            return Err(Error::Malformed(message.to_owned()).into());
        }
    }
    let now = engine.clock.now();
    // A replay leaves out deliveries created after it, or it might never end.
    filter.to = Some(filter.to.map_or(now, |to| to.min(now)));
    let mut conn = engine.pool.get().await?;
    if dry_run {
        let matches = store::count(&mut conn, &filter, MAX_COUNTED).await?;
        return Ok(HttpResponse::Ok().json(DryRun { matches }));
    }
    let per_second = per_second.unwrap_or(DEFAULT_PER_SECOND).clamp(1, MAX_PER_SECOND);
    let replay = new_replay(&caller, &filter, force, per_second, now)?;
    store::insert_replay(&mut conn, &replay).await?;
    tracing::info!(replay.id = %replay.id, by = replay.requested_by, "started replay {}", replay.id);
    Ok(HttpResponse::Accepted().json(view(replay)?))
}

/// Show a replay
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = ReplayView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody),
    )
)]
#[get("/v1/replays/{id}")]
pub(crate) async fn show_replay(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Operator)?;
    let id = id.into_inner();
    let mut conn = deliveries.0.pool.get().await?;
    let replay = store::find_replay(&mut conn, id).await?.ok_or(Error::NoReplay(id))?;
    Ok(HttpResponse::Ok().json(view(replay)?))
}

fn new_replay(
    caller: &Caller,
    filter: &Filter,
    force: bool,
    per_second: i32,
    now: Timestamp,
) -> Result<Replay, Error> {
    Ok(Replay {
        id: store::new_id(now),
        requested_by: caller.claims.client_id.clone(),
        filter: serde_json::to_value(filter)
            .map_err(|error| Error::Malformed(error.to_string()))?,
        force,
        per_second,
        last_delivery_id: Uuid::nil(),
        replayed: 0,
        skipped: 0,
        created_at: now,
        advanced_at: now,
        finished_at: None,
    })
}

fn view(replay: Replay) -> Result<ReplayView, Problem> {
    Ok(ReplayView {
        id: replay.id,
        requested_by: replay.requested_by,
        filter: serde_json::from_value(replay.filter).map_err(store::unreadable)?,
        force: replay.force,
        per_second: replay.per_second,
        replayed: replay.replayed,
        skipped: replay.skipped,
        created_at: replay.created_at,
        finished_at: replay.finished_at,
    })
}
