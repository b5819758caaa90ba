//! `/v1/events/republish`: kept events are published again.

#![expect(unused_qualifications, reason = "the route macros repeat the types of queries")]

use actix_web::{HttpResponse, get, post, web};
use chrono::{DateTime, TimeDelta, Utc};
use domain::access::Scope;
use domain::event::subscribed_types;
use domain::json::{Field, Object, array, object, parsed, read_fields, timestamp};
use platform::{
    ErrorKind, Failure, Problem,
    http::{ErrorBody, Json, PageLimit, Query, Sequential},
    identity::{Access, Caller},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::{
    backlog::Backlog,
    republish_view::{RepublishPage, RepublishView},
    republishes::{self, Republish, Selection},
};

const MAX_TYPES: usize = 20;
const MAX_TYPE_LENGTH: usize = 100;

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("events are being published again already")]
    Running,
    #[error("no events are being published again")]
    NotRunning,
    #[error("no events were published again yet")]
    None,
}

impl Failure for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Running => ErrorKind::Conflict,
            Self::NotRunning | Self::None => ErrorKind::Missing,
        }
    }
}

/// A request to publish events again.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRepublish {
    /// Events that were first published at this time or later.
    since: DateTime<Utc>,
    /// Events that were first published before this time; by default, before now.
    #[schema(required = false)]
    until: Option<DateTime<Utc>>,
    /// Types of events, for example `order.stored.v1`. By default, all types that services consume.
    #[schema(required = false, min_items = 1, max_items = 20)]
    types: Vec<String>,
    /// Count the events, and publish none.
    #[schema(required = false, default = false)]
    dry_run: bool,
}

impl NewRepublish {
    fn read(body: &Object<'_>) -> Option<Self> {
        let since = body.required("since", timestamp);
        let until = body.optional("until", timestamp);
        if let (Some(since), Some(Some(until))) = (since, until)
            && until <= since
        {
            body.invalid("until", "must be after `since`");
        }
        let types = body.optional("types", array(1..=MAX_TYPES, event_type));
        read_fields!(body => Self {
            since: since,
            until: until,
            types: types.map(Option::unwrap_or_default),
            dry_run: body.flag("dry_run"),
        })
    }
}

/// Reads an event type that has a queue. Nobody reads others.
fn event_type(field: Field<'_>) -> Option<String> {
    let known = |text: &str| match subscribed_types().contains(text) {
        true => Ok(text.to_owned()),
        false => Err("is not the type of an event that a service consumes"),
    };
    parsed(1..=MAX_TYPE_LENGTH, known)(field)
}

/// Number of events that a request would publish again.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RepublishDryRun {
    #[schema(value_type = String, example = "order-intake")]
    service: &'static str,
    /// The requested time, or the time from which events are kept if that is later.
    since: DateTime<Utc>,
    until: DateTime<Utc>,
    /// Number of events, counted up to 1,000,000.
    total: i64,
}

/// Publish events again
///
/// The service publishes its kept events to the broker again, in their order, while it continues to
/// publish new ones. Consumers ignore events that they have handled. The work continues after a
/// restart; `GET /v1/events/republish` shows its progress. The token must not belong to a merchant.
#[utoipa::path(
    tag = "events", security(("bearer" = ["operator"])),
    request_body(content = NewRepublish, example = json!({ "since": "2026-11-15T00:00:00Z", "types": ["order.stored.v1"] })),
    responses(
        (status = 200, description = "Result of a dry run", body = RepublishDryRun),
        (status = 202, description = "The events are being published", body = RepublishView),
        (status = 409, description = "Events are being published again already", body = ErrorBody),
    )
)]
#[post("/v1/events/republish")]
pub(crate) async fn republish_events(
    backlog: web::Data<Backlog>,
    Sequential(caller, body): Sequential<Caller, Json>,
) -> Result<HttpResponse, Problem> {
    require(&caller, Scope::Operator)?;
    let NewRepublish { since, until, types, dry_run } =
        body.read(object(NewRepublish::read)).await?;
    let service = backlog.service;
    let mut conn = backlog.pool.get().await?;
    let now = republishes::database_time(&mut conn).await?;
    // Older events are not kept, and later ones are not published yet.
    let retention = TimeDelta::from_std(backlog.event_retention).unwrap_or(TimeDelta::MAX);
    let since = since.max(now - retention);
    let until = until.map_or(now, |until| until.min(now));
    let selection = Selection { since, until, types };
    // Counting may read many events.
    if !dry_run && republishes::running(&mut conn).await?.is_some() {
        return Err(Error::Running.into());
    }
    let total = republishes::count(&mut conn, &selection).await?;
    if dry_run {
        let response = RepublishDryRun { service, since, until, total };
        return Ok(HttpResponse::Ok().json(response));
    }
    let republish = Republish::new(caller.actor(), selection, total, now);
    if !republishes::insert(&mut conn, &republish).await? {
        return Err(Error::Running.into());
    }
    tracing::info!(
        republish.id = %republish.id, by = republish.requested_by, %since, %until, total,
        types = ?republish.types, "{total} events are published again"
    );
    Ok(HttpResponse::Accepted().json(RepublishView::new(service, republish)))
}

/// Show the progress of publishing events again
///
/// The request that was started last. The token must not belong to a merchant.
#[utoipa::path(
    tag = "events", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    responses(
        (status = 200, body = RepublishView),
        (status = 404, description = "No events were published again yet", body = ErrorBody),
    )
)]
#[get("/v1/events/republish")]
pub(crate) async fn show_republish(
    backlog: web::Data<Backlog>,
    caller: Caller,
) -> Result<HttpResponse, Problem> {
    require(&caller, Scope::Read)?;
    let newest = republishes::newest(&mut *backlog.pool.get().await?, None, 1).await?;
    let newest = newest.into_iter().next().ok_or(Error::None)?;
    Ok(HttpResponse::Ok().json(RepublishView::new(backlog.service, newest)))
}

/// The page of a list of requests.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct RepublishQuery {
    /// Maximum number of entries
    #[serde(default)]
    #[param(inline)]
    limit: PageLimit,
    /// The `next` of the previous page.
    after: Option<Uuid>,
}

/// List requests to publish events again
///
/// Newest first, with the person or client that requested each, and its progress. The token must not
/// belong to a merchant.
#[utoipa::path(
    tag = "events", security(("bearer" = ["read"]), ("bearer" = ["operator"])),
    params(RepublishQuery),
    responses((status = 200, body = RepublishPage))
)]
#[get("/v1/events/republishes")]
pub(crate) async fn list_republishes(
    backlog: web::Data<Backlog>,
    caller: Caller,
    query: Query<RepublishQuery>,
) -> Result<HttpResponse, Problem> {
    require(&caller, Scope::Read)?;
    let RepublishQuery { limit, after } = query.into_inner();
    let mut conn = backlog.pool.get().await?;
    let mut found = republishes::newest(&mut conn, after, limit.rows()).await?;
    let next = limit.next(&mut found, |republish| republish.id.to_string());
    let view = |republish| RepublishView::new(backlog.service, republish);
    let republishes = found.into_iter().map(view).collect();
    Ok(HttpResponse::Ok().json(RepublishPage { republishes, next }))
}

/// Stop publishing events again
///
/// Events that the broker has already stay there. A new request can be started at once. The token must not
/// belong to a merchant.
#[utoipa::path(
    tag = "events", security(("bearer" = ["operator"])),
    responses(
        (status = 200, description = "The stopped request", body = RepublishView),
        (status = 404, description = "No events are being published again", body = ErrorBody),
    )
)]
#[post("/v1/events/republish/stop")]
pub(crate) async fn stop_republish(
    backlog: web::Data<Backlog>,
    caller: Caller,
) -> Result<HttpResponse, Problem> {
    require(&caller, Scope::Operator)?;
    let stopped = republishes::stop(&mut *backlog.pool.get().await?).await?;
    let stopped = stopped.ok_or(Error::NotRunning)?;
    tracing::info!(
        republish.id = %stopped.id, by = caller.actor(), done = stopped.done,
        "publishing events again was stopped"
    );
    Ok(HttpResponse::Ok().json(RepublishView::new(backlog.service, stopped)))
}

/// Fails if the token lacks the scope or belongs to a merchant, because events are about all merchants.
fn require(caller: &Caller, scope: Scope) -> Result<(), Access> {
    caller.require(scope)?;
    match &caller.claims.merchant {
        Some(merchant) => Err(Access::OtherMerchant(merchant.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_schema_and_the_reader_agree() {
        let example = json!({ "since": "2026-03-01T09:30:00Z", "types": ["order.stored.v1"] });
        testkit::check_request_body::<NewRepublish, _>(&example, &["types[]"], |document| {
            document.read(object(NewRepublish::read))
        });
    }
}
