//! The progress of replays, and the buttons that pause, resume and stop them.

use actix_web::{get, http::StatusCode, post, web};
use api::delivery::{ReplayState, ReplayView};
use askama::Template;
use futures_util::future::join_all;
use pages::{
    api::{ApiError, Part, Service},
    path,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{ReplayEntry, name_clients};
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, confirm::ConfirmPage,
    delivery::delivering_service, error::sentence, html_with, states::Shown as _,
};

#[derive(Template)]
#[template(path = "replay.html")]
struct ReplayPage {
    page: Page,
    /// The replays that were started together.
    replays: Vec<Part<ReplayEntry>>,
    also: String,
    /// The reason why a button had no effect.
    problem: Option<String>,
}

/// The replays of other services that were started together with this one, which the page shows too.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct StartedTogether {
    /// `exchange:ID,warehouse-notifier:ID`.
    also: String,
}

/// The page of replays that were started together.
pub(super) fn replay_url(replays: &[ReplayEntry]) -> Option<String> {
    let (first, others) = replays.split_first()?;
    let also = others.iter().map(|it| format!("{}:{}", it.service, it.replay.id));
    Some(own_url(first.service, first.replay.id, &also.collect::<Vec<_>>().join(",")))
}

fn own_url(service: Service, id: Uuid, also: &str) -> String {
    match crate::record_list::query_string(&[("also", also)]) {
        query if query.is_empty() => format!("/replays/{service}/{id}"),
        query => format!("/replays/{service}/{id}?{query}"),
    }
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_replay)
        .service(pause_replay)
        .service(resume_replay)
        .service(confirm_stop)
        .service(stop_replay);
}

#[get("/replays/{service}/{id}")]
async fn show_replay(
    signed_in: SignedIn,
    path: web::Path<(String, Uuid)>,
    together: web::Query<StartedTogether>,
) -> PageResult {
    let (service, id) = path.into_inner();
    let own = (delivering_service(&service)?, id);
    show(&signed_in, own, together.into_inner(), None).await
}

async fn show(
    signed_in: &SignedIn,
    own: (Service, Uuid),
    together: StartedTogether,
    problem: Option<String>,
) -> PageResult {
    let page = signed_in.page(Section::Replays);
    let others = others(&together.also).ok_or(PageError::NotFound)?;
    let loaded = join_all([own].into_iter().chain(others).map(async |(service, id)| {
        let path = path!("v1", "replays", id.to_string());
        let mut replay = signed_in.api.get(service, &path, &[]).await;
        if let Ok(replay) = &mut replay {
            name_clients(signed_in, vec![replay]).await;
        }
        Part::new(replay.map(|replay| ReplayEntry { service, replay }))
    }))
    .await;
    let replays = loaded.into_iter().collect::<Result<_, ApiError>>()?;
    let status = if problem.is_some() { StatusCode::CONFLICT } else { StatusCode::OK };
    html_with(status, &ReplayPage { page, replays, also: together.also, problem })
}

fn others(also: &str) -> Option<Vec<(Service, Uuid)>> {
    let one = |text: &str| {
        let (service, id) = text.split_once(':')?;
        Some((delivering_service(service).ok()?, id.parse().ok()?))
    };
    also.split(',').filter(|text| !text.is_empty()).map(one).collect()
}

#[post("/replays/{service}/{id}/pause")]
async fn pause_replay(
    posted: Posted<StartedTogether>,
    path: web::Path<(String, Uuid)>,
) -> PageResult {
    change(posted, path, "pause", Notice::ReplayPaused).await
}

#[post("/replays/{service}/{id}/resume")]
async fn resume_replay(
    posted: Posted<StartedTogether>,
    path: web::Path<(String, Uuid)>,
) -> PageResult {
    change(posted, path, "resume", Notice::ReplayResumed).await
}

#[post("/replays/{service}/{id}/stop")]
async fn stop_replay(
    posted: Posted<StartedTogether>,
    path: web::Path<(String, Uuid)>,
) -> PageResult {
    change(posted, path, "stop", Notice::ReplayStopped).await
}

async fn change(
    Posted { signed_in, form: together }: Posted<StartedTogether>,
    path: web::Path<(String, Uuid)>,
    action: &str,
    notice: Notice,
) -> PageResult {
    let (service, id) = path.into_inner();
    let service = delivering_service(&service)?;
    let path = path!("v1", "replays", id.to_string(), action);
    let changed: Result<ReplayView, _> =
        signed_in.api.send_json(service, Method::POST, None, &path, &json!({})).await;
    match changed {
        Ok(_) => Ok(notice.redirect(&own_url(service, id, &together.also))),
        Err(ApiError::Conflict(body)) => {
            let problem = Some(sentence(&body.message));
            show(&signed_in, (service, id), together, problem).await
        }
        Err(error) => Err(error.into()),
    }
}

/// Asks before a replay is stopped, because it cannot be resumed.
#[get("/replays/{service}/{id}/stop")]
async fn confirm_stop(signed_in: SignedIn, path: web::Path<(String, Uuid)>) -> PageResult {
    let (service, id) = path.into_inner();
    let service = delivering_service(&service)?;
    let replay = signed_in.api.get(service, &path!("v1", "replays", id.to_string()), &[]).await?;
    let replay = ReplayEntry { service, replay };
    let effects = vec![
        format!("The replay of {} ends.", replay.words()),
        format!("So far: {}. Deliveries that are sent again already continue.", replay.result()),
        "A stopped replay cannot be resumed. To continue later, pause it instead.".to_owned(),
    ];
    ConfirmPage {
        page: signed_in.page(Section::Replays),
        title: "Stop this replay".to_owned(),
        effects,
        button: "Stop the replay",
        key: None,
        rotation: None,
        version: None,
        problem: None,
        back: own_url(service, id, ""),
    }
    .show()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replays_that_started_together_share_a_page() {
        let id = Uuid::nil();
        let also = format!("exchange:{id},warehouse-notifier:{id}");
        let expected = [(Service::Exchange, id), (Service::WarehouseNotifier, id)];
        assert_eq!(others(&also).unwrap(), expected);
        assert_eq!(others(""), Some(Vec::new()));
        assert_eq!(others("auth:1"), None);
        let url = own_url(Service::RmaEngine, id, &also);
        assert!(url.starts_with(&format!("/replays/rma-engine/{id}?also=exchange%3A")), "{url}");
        assert_eq!(own_url(Service::RmaEngine, id, ""), format!("/replays/rma-engine/{id}"));
    }
}
