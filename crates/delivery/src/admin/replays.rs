//! Replays of the deliveries that match a filter.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, post, web};
use chrono::{DateTime, Utc};
use domain::access::{MerchantId, Scope};
use domain::json::object;
use platform::http::{ErrorBody, Json, PageLimit, Sequential};
use platform::identity::Caller;
use platform::{Problem, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

pub(super) use super::new_replay::DEFAULT_PER_SECOND;
use super::new_replay::NewReplay;
use super::{Error, parse_merchant, readable_merchant};
use crate::Deliveries;
use crate::store::{self, Filter, Replay, State};

/// A dry run counts no further.
const MAX_COUNTED: i64 = 100_000;

/// Page of a list of replays.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayQuery {
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<Uuid>,
}

/// State of a replay.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ReplayState {
    Running,
    Finished,
}

/// A page of replays, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayPage {
    replays: Vec<ReplayView>,
    /// Pass as `after` to get the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A replay and its progress.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReplayView {
    id: Uuid,
    /// Id of the client that requested the replay.
    requested_by: String,
    state: ReplayState,
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

/// Replay deliveries that match a filter
///
/// The replay runs in the background and continues after a restart. `GET /v1/replays/{id}` shows its
/// progress.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["operator"])),
    request_body(content = NewReplay, example = json!({ "filter": { "merchant": "acme", "kind": "rma" }, "per_second": 20 })),
    responses(
        (status = 200, description = "Result of a dry run", body = DryRun),
        (status = 202, description = "The replay has started", body = ReplayView),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 415, body = ErrorBody), (status = 422, body = ErrorBody),
    )
)]
#[post("/v1/replays")]
pub(crate) async fn start_replay(
    deliveries: web::Data<Deliveries>,
    Sequential(caller, Json(body)): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Operator)?;
    let engine = &deliveries.0;
    let is_limited = caller.merchant_scope().is_some();
    let NewReplay { mut filter, force, dry_run, per_second, all: _ } =
        body.read(object(|body| NewReplay::read(body, is_limited)))?;
    let merchant = parse_merchant(filter.merchant.as_deref())?;
    filter.merchant = readable_merchant(&caller, merchant)?.map(String::from);
    filter.state = filter.state.or(Some(State::Dead));
    let now = engine.clock.now();
    // A replay leaves out deliveries created after it, or it might never end.
    filter.to = Some(filter.to.map_or(now, |to| to.min(now)));
    let mut conn = engine.pool.get().await?;
    if dry_run {
        let matches = store::count(&mut conn, &filter, MAX_COUNTED).await?;
        return Ok(HttpResponse::Ok().json(DryRun { matches }));
    }
    let replay = new_replay(&caller, &filter, force, per_second, now)?;
    store::insert_replay(&mut conn, &replay).await?;
    tracing::info!(replay.id = %replay.id, by = replay.requested_by, "started replay {}", replay.id);
    Ok(HttpResponse::Accepted().json(view(replay)?))
}

/// List replays
///
/// Newest first, with the client that requested each, its filter and its progress.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["operator"])), params(ReplayQuery),
    responses(
        (status = 200, body = ReplayPage), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    )
)]
#[get("/v1/replays")]
pub(crate) async fn list_replays(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: web::Query<ReplayQuery>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Operator)?;
    let merchant = caller.merchant_scope().map(MerchantId::as_str);
    let mut conn = deliveries.0.pool.get().await?;
    let rows = query.limit.rows();
    let mut replays = store::newest_replays(&mut conn, merchant, query.after, rows).await?;
    let next = query.limit.next(&mut replays, |last| last.id.to_string());
    let replays = replays.into_iter().map(view).collect::<Result<_, _>>()?;
    Ok(HttpResponse::Ok().json(ReplayPage { replays, next }))
}

/// Show a replay
///
/// Shows the progress of a replay by filter.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["operator"])), params(("id" = Uuid, Path)),
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
    let replay = view(replay)?;
    let merchant = caller.merchant_scope().map(MerchantId::as_str);
    if merchant.is_some() && replay.filter.merchant.as_deref() != merchant {
        return Err(Error::NoReplay(id).into());
    }
    Ok(HttpResponse::Ok().json(replay))
}

pub(super) fn new_replay(
    caller: &Caller,
    filter: &Filter,
    force: bool,
    per_second: i32,
    now: Timestamp,
) -> Result<Replay, Error> {
    Ok(Replay {
        id: store::new_id(now),
        requested_by: caller.actor().to_owned(),
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
        state: match replay.finished_at {
            Some(_) => ReplayState::Finished,
            None => ReplayState::Running,
        },
        filter: serde_json::from_value(replay.filter).map_err(store::unreadable)?,
        force: replay.force,
        per_second: replay.per_second,
        replayed: replay.replayed,
        skipped: replay.skipped,
        created_at: replay.created_at,
        finished_at: replay.finished_at,
    })
}
