//! The start page of staff: the state of the whole installation at a glance.
//!
//! Every part comes from a call of its own. All calls run in parallel, and a part whose service does
//! not respond says so.

mod backlog;
mod figures;
mod latency;
mod services;
mod traffic;

use actix_web::{get, web};
use api::delivery::{EndpointView, HourlyReport, ReplayView, WorstEndpoints};
use askama::Template;
use futures_util::future::join5;
use pages::{api::Service, path};

use crate::{
    Page, PageResult, Section, SignedIn,
    endpoint_health::{attention, state_badge, worst_of},
    home, html,
    markup::{link, text},
    parts::{Loaded, each},
    record_list::Records,
    replays::{ReplayEntry, name_clients},
    table::Table,
};

use backlog::{Backlog, QueueRow};
use figures::Figure;
use services::ServiceRow;
use traffic::Traffic;

/// The number of endpoints in the list.
const WORST: &str = "10";

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    page: Page,
    figures: Vec<Figure>,
    services: Table,
    queues: Loaded<QueueRow>,
    traffic: Traffic,
    traffic_missing: Vec<Service>,
    endpoints: Table,
    endpoints_missing: Vec<Service>,
    replays: Table,
    replays_missing: Vec<Service>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_start);
}

/// The overview for staff, the home page for a merchant's people.
#[get("/")]
async fn show_start(signed_in: SignedIn) -> PageResult {
    match signed_in.person.merchant.clone() {
        Some(merchant) => home::show(&signed_in, &merchant).await,
        None => show_overview(&signed_in).await,
    }
}

async fn show_overview(signed_in: &SignedIn) -> PageResult {
    let api = &signed_in.api;
    let page = signed_in.page(Section::Overview);
    let (services, backlogs, hours, endpoints, replays) = join5(
        ServiceRow::load(api),
        each::<Backlog>(api, &Service::ALL, "v1/backlog", &[]),
        each::<HourlyReport>(api, &Service::DELIVERING, "v1/reports/hourly", &[("hours", "24")]),
        each::<WorstEndpoints>(
            api,
            &Service::DELIVERING,
            "v1/endpoints/worst",
            &[("limit", WORST)],
        ),
        each::<Records<ReplayView>>(
            api,
            &Service::DELIVERING,
            "v1/replays",
            &[("state", "running")],
        ),
    )
    .await;
    let backlogs = backlogs?;
    let hours = hours?;
    let endpoints = endpoints?;
    let replays = replays?;
    let traffic = Traffic::new(hours.entries.into_iter().map(|(_, report)| report));
    let mut figures = figures::figures(&page, &services, &backlogs, &endpoints);
    figures.push(figures::success(&traffic, &hours.missing));
    let running = replays.entries.into_iter().flat_map(|(service, list)| {
        list.records.into_iter().map(move |replay| ReplayEntry { service, replay })
    });
    let mut running: Vec<_> = running.collect();
    name_clients(signed_in, running.iter_mut().map(|entry| &mut entry.replay).collect()).await;
    html(&OverviewPage {
        figures,
        services: services::table(&services, &page),
        queues: Loaded { missing: backlogs.missing, entries: QueueRow::list(backlogs.entries) },
        traffic,
        traffic_missing: hours.missing,
        replays: replay_table(&running, &page),
        replays_missing: replays.missing,
        endpoints: endpoint_table(&worst_of(endpoints.entries), &page),
        endpoints_missing: endpoints.missing,
        page,
    })
}

fn endpoint_table(endpoints: &[EndpointView], page: &Page) -> Table {
    Table::of("Endpoints that need attention", endpoints)
        .head("Endpoint", |it| {
            let url = path!("merchants", it.merchant, "endpoints");
            link(format!("/{url}"), format!("{} of {}", it.kind, it.merchant))
        })
        .cell("State", |it| {
            state_badge(it).and_some(attention(it).map(|reason| text(reason).classed("small")))
        })
        .cell("Since", |it| page.time_or(it.since, "–"))
        .health()
        .cell("Oldest due", |it| page.time_or(it.oldest_due_at, "–"))
        .table()
}

fn replay_table(entries: &[ReplayEntry], page: &Page) -> Table {
    Table::of("Running replays", entries)
        .replays("Progress")
        .cell("Started", |it| page.time(it.replay.created_at))
        .table()
}
