//! Replays: past and running ones, a new one, and the progress of one.

mod filter;
mod form;
mod new;
mod preview;
mod progress;
mod wire;

use std::cmp::Reverse;

use actix_web::{get, web};
use askama::Template;
use futures_util::future::join_all;
use pages::{
    api::{ApiError, Service},
    text::Moment,
};
use serde::Deserialize;

use crate::{
    Page, PageResult, Section, SignedIn, deliveries::explain, error::sentence, html,
    listing::query_string,
};

pub(crate) use wire::{Replay, ReplayList};

const PAGE: usize = 50;

/// The filter of the list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListFilter {
    merchant: String,
    state: String,
    after: String,
}

impl ListFilter {
    fn query(&self, after: &str) -> String {
        query_string(&[("merchant", &self.merchant), ("state", &self.state), ("after", after)])
    }
}

/// A replay with the service that runs it.
pub(crate) struct ReplayEntry {
    pub(crate) service: Service,
    pub(crate) words: String,
    pub(crate) created: Moment,
    pub(crate) replay: Replay,
}

impl ReplayEntry {
    pub(crate) fn new(page: &Page, service: Service, replay: Replay) -> Self {
        Self {
            service,
            words: replay.filter.words(replay.created_at),
            created: page.moment(replay.created_at),
            replay,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("/replays/{}/{}", self.service, self.replay.id)
    }
}

#[derive(Template)]
#[template(path = "replays.html")]
struct ReplaysPage {
    page: Page,
    filter: ListFilter,
    entries: Vec<ReplayEntry>,
    older: Option<String>,
    unavailable: Vec<Service>,
    rejected: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_replays).configure(new::routes).configure(progress::routes);
}

#[get("/replays")]
async fn list_replays(signed_in: SignedIn, filter: web::Query<ListFilter>) -> PageResult {
    let filter = filter.into_inner();
    if !filter.merchant.is_empty() {
        signed_in.merchant(&filter.merchant)?;
    }
    let page = signed_in.page(Section::Replays);
    let mut shown = ReplaysPage {
        page,
        filter,
        entries: Vec::new(),
        older: None,
        unavailable: Vec::new(),
        rejected: None,
    };
    let mut has_more = false;
    for (service, list) in load(&signed_in, &shown.filter).await {
        match list {
            Ok(list) => {
                has_more |= list.next.is_some();
                let entry = |replay| ReplayEntry::new(&shown.page, service, replay);
                shown.entries.extend(list.replays.into_iter().map(entry));
            }
            Err(
                ApiError::Unavailable { service }
                | ApiError::Unauthenticated { service }
                | ApiError::TooManyRequests { service, .. },
            ) => shown.unavailable.push(service),
            Err(ApiError::Invalid(body)) => shown.rejected = Some(sentence(&explain(&body))),
            Err(error) => return Err(error.into()),
        }
    }
    // As for deliveries, one order and one cursor serve all services.
    shown.entries.sort_by_key(|entry| Reverse(entry.replay.id));
    has_more |= shown.entries.len() > PAGE;
    shown.entries.truncate(PAGE);
    let last = shown.entries.last().filter(|_| has_more);
    shown.older = last.map(|last| shown.filter.query(&last.replay.id.to_string()));
    html(&shown)
}

async fn load(
    signed_in: &SignedIn,
    filter: &ListFilter,
) -> Vec<(Service, Result<ReplayList, ApiError>)> {
    let limit = PAGE.to_string();
    let query = [
        ("merchant", filter.merchant.trim()),
        ("state", &filter.state),
        ("after", &filter.after),
        ("limit", &limit),
    ];
    join_all(
        Service::DELIVERING
            .map(async |service| (service, signed_in.api.get(service, "v1/replays", &query).await)),
    )
    .await
}
