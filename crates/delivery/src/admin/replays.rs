//! Replays of the deliveries that match a filter.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, get, post, web};
use api::delivery::{DryRun, Filter, ReplayPage, ReplayState, ReplayView, State};
use chrono::TimeDelta;
use diesel_async::AsyncPgConnection;
use domain::access::{MerchantId, Scope};
use domain::json::{Digest, Document, object};
use platform::http::{Json, PageLimit, Query, Sequential, json_response, request_id};
use platform::idempotency::{self, KeyHeader};
use platform::identity::Caller;
use platform::{Problem, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::access::{includes, readable_merchant, replayable_merchant};
use super::dry_run::dry_run;
use super::new_replay::NewReplay;
pub(super) use super::new_replay::{DEFAULT_PER_SECOND, MAX_COUNTED};
use super::replay_view::show;
use super::{Error, parse_merchant};
use crate::Deliveries;
use crate::store::{self, MatchCounts, Replay};

/// Filter and page of a list of replays.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayQuery {
    merchant: Option<String>,
    /// `running`, `paused`, `stopped` or `finished`.
    state: Option<ReplayState>,
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<Uuid>,
}

/// The number of matches differs from the expected one, or is too large to be counted.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnexpectedMatches {
    pub(super) message: String,
    /// Deliveries that match now, as far as they were counted.
    matches: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

/// Replay deliveries that match a filter
///
/// The replay runs in the background and continues after a restart. `GET /v1/replays/{id}` shows its
/// progress. A token that is limited to a merchant replays deliveries of that merchant only. A dry run ignores
/// the `Idempotency-Key`.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["replay"])),
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body(content = NewReplay, example = json!({ "filter": { "merchant": "acme", "kind": "rma" }, "per_second": 20 })),
    responses(
        (status = 200, description = "Result of a dry run", body = DryRun),
        (status = 202, description = "The replay has started", body = ReplayView),
        (
            status = 409, body = UnexpectedMatches,
            description = "The number of matches differs from `expect_matches` by more than `tolerance`, or cannot be counted",
        ),
    )
)]
#[post("/v1/replays")]
pub(crate) async fn start_replay(
    deliveries: web::Data<Deliveries>,
    header: KeyHeader,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Replay)?;
    let engine = &deliveries.0;
    let is_limited = caller.merchant_scope().is_some();
    let read = move |document: &Document| {
        let new = document.read(object(|body| NewReplay::read(body, is_limited)));
        (Digest::of(document.value()), new)
    };
    let (digest, new) = body.read_with(read).await?;
    let new = new?;
    let now = engine.clock.now();
    let filter = limited_filter(&caller, new.filter, now)?;
    let mut conn = engine.pool.reader(filter.merchant.as_deref()).await?;
    if new.dry_run {
        return Ok(HttpResponse::Ok().json(dry_run(&mut conn, &filter, new.per_second).await?));
    }
    let key = header.key_for(caller.merchant_scope(), "replays", digest);
    let replay = new_replay(&caller, &filter, new.force, new.per_second, now)?;
    let id = replay.id;
    // The count is part of the work: after the first request, other deliveries match.
    let started = conn
        .transaction(async |conn| {
            idempotency::run(conn, key.as_ref(), now, async |conn| {
                let matches = store::match_counts(conn, &filter, MAX_COUNTED).await?;
                if let Some(expected) = new.expect_matches {
                    UnexpectedMatches::check(&matches, expected, new.tolerance)?;
                }
                let replay = Replay { matched: matches.total, ..replay };
                store::insert_replay(conn, &replay).await?;
                Ok::<_, Error>(show(replay)?)
            })
            .await
        })
        .await;
    match started {
        Ok(response) => {
            engine.replayed.notify_one();
            tracing::info!(replay.id = %id, by = caller.actor(), "started replay {id}");
            Ok(json_response(StatusCode::ACCEPTED, response))
        }
        Err(Error::UnexpectedMatches(unexpected)) => Ok(HttpResponse::Conflict().json(unexpected)),
        Err(error) => Err(error.into()),
    }
}

impl UnexpectedMatches {
    /// Compares the number of matches with the expected one. A count that stopped at its limit says nothing
    /// about the real number.
    fn check(counts: &MatchCounts, expected: i64, tolerance: i64) -> Result<(), Error> {
        let matches = counts.total;
        let message = if counts.is_truncated {
            "there are too many deliveries to count; narrow the filter".to_owned()
        } else if (matches - expected).abs() > tolerance {
            format!("{matches} deliveries match now, not as many as expected")
        } else {
            return Ok(());
        };
        let unexpected = Self { message, matches, request_id: request_id() };
        Err(Error::UnexpectedMatches(unexpected))
    }
}

/// Limits a filter to the merchant of the caller, to settled deliveries, and to those created by now.
fn limited_filter(caller: &Caller, mut filter: Filter, now: Timestamp) -> Result<Filter, Problem> {
    let merchant = parse_merchant(filter.merchant.as_deref())?;
    filter.merchant = replayable_merchant(caller, merchant)?.map(String::from);
    filter.state = filter.state.or(Some(State::Dead));
    // A replay leaves out deliveries created after it, or it might never end.
    filter.to = Some(filter.to.map_or(now, |to| to.min(now)));
    Ok(filter)
}

/// List replays
///
/// Newest first, with the person or client that requested each, its filter and its progress.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(ReplayQuery),
    responses((status = 200, body = ReplayPage))
)]
#[get("/v1/replays")]
pub(crate) async fn list_replays(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    query: Query<ReplayQuery>,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&caller, parse_merchant(query.merchant.as_deref())?)?;
    let merchant = merchant.as_ref().map(MerchantId::as_str);
    let mut conn = deliveries.0.pool.reader(merchant).await?;
    let state = query.state;
    let rows = query.limit.rows();
    let mut replays = store::newest_replays(&mut conn, merchant, state, query.after, rows).await?;
    let next = query.limit.next(&mut replays, |last| last.id.to_string());
    let replays = replays.into_iter().map(show).collect::<Result<_, _>>()?;
    Ok(HttpResponse::Ok().json(ReplayPage { replays, next }))
}

/// Show a replay
///
/// Shows the progress of a replay by filter.
#[utoipa::path(
    tag = "deliveries", security(("bearer" = ["read"]), ("bearer" = ["orders"]), ("bearer" = ["returns"])),
    params(("id" = Uuid, Path)),
    responses((status = 200, body = ReplayView))
)]
#[get("/v1/replays/{id}")]
pub(crate) async fn show_replay(
    deliveries: web::Data<Deliveries>,
    caller: Caller,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, Problem> {
    let merchant = readable_merchant(&caller, None)?;
    let mut conn = deliveries.0.pool.get().await?;
    let replay = find(&mut conn, merchant.as_ref(), id.into_inner()).await?;
    Ok(HttpResponse::Ok().json(replay))
}

/// Finds a replay that a caller limited to `merchant` may see.
pub(super) async fn find(
    conn: &mut AsyncPgConnection,
    merchant: Option<&MerchantId>,
    id: Uuid,
) -> Result<ReplayView, Problem> {
    let replay = store::find_replay(conn, id).await?.ok_or(Error::NoReplay(id))?;
    let replay = show(replay)?;
    if !includes(merchant, replay.filter.merchant.as_deref()) {
        return Err(Error::NoReplay(id).into());
    }
    Ok(replay)
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
        state: ReplayState::Running.to_string(),
        matched: 0,
        last_delivery_id: Uuid::nil(),
        replayed: 0,
        skipped: 0,
        failed: 0,
        created_at: now,
        // The first step is due at once.
        advanced_at: now - TimeDelta::seconds(1),
        finished_at: None,
        changed_by: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_counted_number_confirms_a_replay() {
        let message = |total, is_truncated, expected, tolerance| {
            let counts = MatchCounts { total, is_truncated, ..MatchCounts::default() };
            let checked = UnexpectedMatches::check(&counts, expected, tolerance);
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(message(99, false, 100, 1), None);
        let changed = "98 deliveries match now, not as many as expected";
        assert_eq!(message(98, false, 100, 1).as_deref(), Some(changed));
        let uncounted = message(100, true, 100, MAX_COUNTED).unwrap();
        assert!(uncounted.ends_with("narrow the filter"), "{uncounted}");
    }
}
