//! Replays: past and running ones, a new one, and the progress of one.

mod entry;
mod filter;
mod form;
mod new;
mod preview;
mod progress;

use std::cmp::Reverse;

use actix_web::{get, web};
use api::delivery::{ReplayState, ReplayView};
use askama::Template;
use futures_util::future::join_all;
use pages::{
    api::{ApiError, Service},
    form::Fields,
};
use strum::VariantArray as _;
use uuid::Uuid;

use crate::{
    Page, PageResult, Section, SignedIn,
    deliveries::explain,
    error::sentence,
    filter::{Condition, Filter, or_any},
    html,
    markup::{badge, link, text},
    record_list::{PAGE, Records},
    states::Shown as _,
    table::{Columns, Table},
};

pub(crate) use entry::{ReplayEntry, name_clients};

/// The number of replays on a page.
const SHOWN: usize = 50;

const CONDITIONS: &[Condition] = &[
    Condition::MERCHANT.sent_as("merchant"),
    Condition::choice("state", "State", || {
        or_any(ReplayState::VARIANTS.iter().map(|state| (state.name(), state.to_string())))
    }),
];

impl Columns<'_, ReplayEntry> {
    /// The columns that all tables of replays have.
    pub(crate) fn replays(self, result: &'static str) -> Self {
        self.wrapped_head("Filter", |it| link(it.url(), it.words()))
            .cell(result, |it| text(it.result()))
            .wrapped("By", |it| text(&it.replay.requested_by))
    }
}

#[derive(Template)]
#[template(path = "replays.html")]
struct ReplaysPage {
    page: Page,
    filter: Filter,
    table: Table,
    older: Option<String>,
    unavailable: Vec<Service>,
    rejected: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_replays).configure(new::routes).configure(progress::routes);
}

#[get("/replays")]
async fn list_replays(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let filter = Filter::read(&signed_in, "/replays", CONDITIONS, &query);
    let filter = filter.with_cursor_of::<Uuid>();
    if !filter.value("merchant").is_empty() {
        signed_in.merchant(filter.value("merchant"))?;
    }
    let mut entries = Vec::new();
    let mut has_more = false;
    let mut unavailable = Vec::new();
    let mut rejected = None;
    let lists = if filter.is_valid() { load(&signed_in, &filter).await } else { Vec::new() };
    for (service, list) in lists {
        match list {
            Ok(list) => {
                has_more |= list.next.is_some();
                let entry = |replay| ReplayEntry { service, replay };
                entries.extend(list.records.into_iter().map(entry));
            }
            Err(
                ApiError::Unavailable { service }
                | ApiError::Unauthenticated { service }
                | ApiError::TooManyRequests { service, .. },
            ) => unavailable.push(service),
            Err(ApiError::Invalid(body)) => rejected = Some(sentence(&explain(&body))),
            Err(error) => return Err(error.into()),
        }
    }
    // As for deliveries, one order and one cursor serve all services.
    entries.sort_by_key(|entry| Reverse(entry.replay.id));
    has_more |= entries.len() > SHOWN;
    entries.truncate(SHOWN);
    name_clients(&signed_in, entries.iter_mut().map(|entry| &mut entry.replay).collect()).await;
    let page = signed_in.page(Section::Replays);
    let last = entries.last().filter(|_| has_more);
    html(&ReplaysPage {
        older: last.map(|last| last.replay.id.to_string()),
        table: replay_table(&entries, &page),
        page,
        filter,
        unavailable,
        rejected,
    })
}

fn replay_table(entries: &[ReplayEntry], page: &Page) -> Table {
    Table::of("Replays", entries)
        .live(5, |it| format!("replay-{}", it.replay.id))
        .cell("State", |it| badge(it.replay.tone(), it.replay.state))
        .replays("Result")
        .cell("Service", |it| text(it.service))
        .cell("Started", |it| page.time(it.replay.created_at))
        .table()
}

async fn load(
    signed_in: &SignedIn,
    filter: &Filter,
) -> Vec<(Service, Result<Records<ReplayView>, ApiError>)> {
    let conditions = filter.request();
    let conditions = conditions.iter().map(|(name, value)| (*name, value.as_str()));
    let page = [("after", filter.after.as_str()), ("limit", PAGE)];
    let query: Vec<_> = conditions.chain(page).collect();
    join_all(
        Service::DELIVERING
            .map(async |service| (service, signed_in.api.get(service, "v1/replays", &query).await)),
    )
    .await
}
