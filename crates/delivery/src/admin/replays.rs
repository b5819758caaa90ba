//! Sending again: one message, or all that fit a filter.

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

use super::list::merchant_id;
use super::{Refused, check_filter};
use crate::Deliveries;
use crate::ledger::{self, Filter, Replay, State, Superseded};

const USUAL_RATE: i32 = 50;
const HIGHEST_RATE: i32 = 1000;
/// A dry run counts no further.
const COUNTED: i64 = 100_000;

/// How to replay one message.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct Force {
    /// Also when a newer message of its ordering_key has been delivered.
    #[serde(default)]
    force: bool,
}

/// What to replay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReplay {
    /// Which messages; dead ones unless it says `delivered`.
    filter: Filter,
    /// Also messages that a newer one of their ordering_key has overtaken.
    #[serde(default)]
    force: bool,
    /// Only say how many there are.
    #[serde(default)]
    dry_run: bool,
    /// 50 unless said, 1000 at the most.
    per_second: Option<i32>,
}

/// A replay and how far it came.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayView {
    id: Uuid,
    requested_by: String,
    filter: Filter,
    force: bool,
    per_second: i32,
    /// Put on the way again.
    replayed: i64,
    /// Superseded, or under way already.
    skipped: i64,
    created_at: DateTime<Utc>,
    finished_at: Option<DateTime<Utc>>,
}

/// What a replay would do.
#[derive(Serialize, ToSchema)]
pub(crate) struct DryRun {
    /// How many messages fit; counted up to 100 000.
    matches: i64,
}

/// Replay a delivery
///
/// It is tried again as if it were new, under the same id; its letter leaves the dead-letter queue.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), params(("id" = Uuid, Path), Force),
    responses(
        (status = 202, description = "It is on its way"), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, description = "Under way already, or overtaken", body = ErrorBody),
    )
)]
#[post("/v1/deliveries/{id}/replay")]
pub(crate) async fn replay_delivery(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
    query: web::Query<Force>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Operator)?;
    let (id, engine) = (id.into_inner(), &deliveries.0);
    let overtaken = if query.force { Superseded::SentToo } else { Superseded::Skipped };
    let mut conn = engine.pool.get().await?;
    let found = ledger::find(&mut conn, id).await?.ok_or(Refused::NoDelivery(id))?;
    if caller.merchant_scope().is_some_and(|merchant| merchant.as_str() != found.merchant) {
        return Err(Refused::NoDelivery(id).into());
    }
    if found.state() == State::Pending {
        return Err(Refused::UnderWay(id).into());
    }
    let now = engine.clock.now();
    let only = Filter { delivery: Some(id), ..Filter::default() };
    // Who did it is written down with what was done, as for a replay by filter.
    let replay = Replay {
        last_seen: id,
        replayed: 1,
        finished_at: Some(now),
        ..new_replay(&caller, &only, query.force, USUAL_RATE, now)?
    };
    let revived = conn
        .transaction(async |conn| {
            let revived = ledger::revive(conn, now, &[id], overtaken).await?;
            if !revived.is_empty() {
                ledger::keep_replay(conn, &replay).await?;
            }
            Ok::<_, DatabaseError>(revived)
        })
        .await?;
    if revived.is_empty() {
        return Err(Refused::Superseded(id).into());
    }
    engine.wake.notify_one();
    engine.replayed.notify_one();
    tracing::info!(delivery.id = %id, by = caller.claims.client_id, "replayed delivery {id}");
    Ok(HttpResponse::Accepted().finish())
}

/// Replay what fits a filter
///
/// It goes on in the background, also after a restart; `GET /v1/replays/{id}` says how far it came.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = [])), request_body = NewReplay,
    responses(
        (status = 200, description = "A dry run", body = DryRun), (status = 202, body = ReplayView),
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
    let mut wanted: NewReplay =
        serde_json::from_slice(&body).map_err(|error| Refused::Malformed(error.to_string()))?;
    check_filter(&wanted.filter)?;
    let asked = merchant_id(wanted.filter.merchant.as_deref())?;
    wanted.filter.merchant = super::readable(&caller, asked)?.map(String::from);
    match wanted.filter.state {
        None => wanted.filter.state = Some(State::Dead),
        Some(State::Dead | State::Delivered) => {}
        Some(State::Pending) => {
            return Err(Refused::Malformed("what is pending is under way already".into()).into());
        }
    }
    let now = engine.clock.now();
    // What is created after this moment is not part of it, or it might never end.
    wanted.filter.to = Some(wanted.filter.to.map_or(now, |to| to.min(now)));
    let mut conn = engine.pool.get().await?;
    if wanted.dry_run {
        let matches = ledger::count(&mut conn, &wanted.filter, COUNTED).await?;
        return Ok(HttpResponse::Ok().json(DryRun { matches }));
    }
    let per_second = wanted.per_second.unwrap_or(USUAL_RATE).clamp(1, HIGHEST_RATE);
    let replay = new_replay(&caller, &wanted.filter, wanted.force, per_second, now)?;
    conn.transaction(async |conn| ledger::keep_replay(conn, &replay).await).await?;
    tracing::info!(replay.id = %replay.id, by = replay.requested_by, "replay {} begins", replay.id);
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
    let replay = ledger::find_replay(&mut conn, id).await?.ok_or(Refused::NoReplay(id))?;
    Ok(HttpResponse::Ok().json(view(replay)?))
}

fn new_replay(
    caller: &Caller,
    filter: &Filter,
    force: bool,
    per_second: i32,
    now: Timestamp,
) -> Result<Replay, Refused> {
    Ok(Replay {
        id: ledger::new_id(now),
        requested_by: caller.claims.client_id.clone(),
        filter: serde_json::to_value(filter)
            .map_err(|error| Refused::Malformed(error.to_string()))?,
        force,
        per_second,
        last_seen: Uuid::nil(),
        replayed: 0,
        skipped: 0,
        created_at: now,
        finished_at: None,
    })
}

fn view(replay: Replay) -> Result<ReplayView, Problem> {
    Ok(ReplayView {
        id: replay.id,
        requested_by: replay.requested_by,
        filter: serde_json::from_value(replay.filter).map_err(ledger::unreadable)?,
        force: replay.force,
        per_second: replay.per_second,
        replayed: replay.replayed,
        skipped: replay.skipped,
        created_at: replay.created_at,
        finished_at: replay.finished_at,
    })
}
