//! The start page of a merchant's people: the next step of the onboarding, the health of the endpoints
//! and recent failures.

mod checklist;
mod facts;
mod step;
mod steps;

use api::{delivery::EndpointView, orders::OrderSummary};
use askama::Template;
use futures_util::future::{join, join4};
use pages::{
    api::{Part, Service},
    path,
};

use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    deliveries::{Entry, Found, Search},
    endpoint_health::{attention, state_badge},
    html,
    markup::{link, text},
    parts::{Loaded, each},
    record_list::Records,
    table::Table,
};

use checklist::Checklist;
use facts::{ClientList, Facts, MerchantView};
use step::StepState;

const FAILURES: usize = 5;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    page: Page,
    merchant: String,
    name: String,
    checklist: Checklist,
    endpoints: Loaded<EndpointView>,
    endpoint_table: Table,
    failures: Table,
    /// The services whose failures are not known.
    failures_missing: Vec<Service>,
}

pub(crate) async fn show(signed_in: &SignedIn, merchant: &str) -> PageResult {
    let (facts, (endpoints, failures)) = join(
        load_facts(signed_in, merchant),
        join(load_endpoints(signed_in, merchant), load_failures(signed_in)),
    )
    .await;
    let facts = facts?;
    let endpoints = endpoints?;
    let failures = failures?;
    let zone = match &facts.merchant {
        Part::Loaded(merchant) => merchant.time_zone.as_str(),
        Part::Missing(_) => "",
    };
    let page = signed_in.page(Section::Overview).in_zone(zone);
    let checklist = Checklist::new(&page, merchant, &facts, &endpoints);
    let name = match &facts.merchant {
        Part::Loaded(merchant) => merchant.name.clone(),
        Part::Missing(_) => merchant.to_owned(),
    };
    let endpoint_table = endpoint_table(&endpoints.entries, merchant, &page);
    html(&HomePage {
        failures: failure_table(&failures.deliveries, &page),
        failures_missing: failures.unavailable,
        merchant: merchant.to_owned(),
        page,
        name,
        checklist,
        endpoints,
        endpoint_table,
    })
}

fn endpoint_table(endpoints: &[EndpointView], merchant: &str, page: &Page) -> Table {
    let url = format!("/{}", path!("merchants", merchant, "endpoints"));
    Table::of("Endpoints", endpoints)
        .head("Message", |it| link(&url, it.kind))
        .cell("State", |it| {
            let reason = attention(it).map(|reason| text(reason).classed("small"));
            let since = it.since.map(|at| text("since").and(page.time(at)).classed("small"));
            state_badge(it).and_some(reason).and_some(since)
        })
        .health()
        .cell("Last success", |it| {
            page.time_or(it.last_success.as_ref().map(|last| last.at), "never")
        })
        .table()
}

fn failure_table(entries: &[Entry], page: &Page) -> Table {
    Table::of("Recent failures", entries)
        .head("Event", |it| link(it.url(), &it.delivery.event))
        .ordering_key()
        .response(page)
        .table()
}

async fn load_facts(signed_in: &SignedIn, merchant: &str) -> Result<Facts, PageError> {
    let api = &signed_in.api;
    let path = path!("v1", "merchants", merchant);
    let clients_query = [("merchant", merchant), ("limit", "100")];
    let (settings, clients, orders, returns) = join4(
        api.get::<MerchantView>(Service::Auth, &path, &[]),
        api.get::<ClientList>(Service::Auth, "v1/clients", &clients_query),
        api.get_for::<OrderSummary>(Service::OrderIntake, merchant, "v1/order_summary", &[]),
        api.get_for::<Records<_>>(Service::RmaEngine, merchant, "v1/returns", &[("limit", "1")]),
    )
    .await;
    Ok(Facts {
        merchant: Part::new(settings)?,
        clients: Part::new(clients)?,
        orders: Part::new(orders)?,
        returns: Part::new(returns)?,
    })
}

async fn load_endpoints(
    signed_in: &SignedIn,
    merchant: &str,
) -> Result<Loaded<EndpointView>, PageError> {
    let query = [("merchant", merchant), ("limit", "200")];
    let lists: Loaded<(Service, Records<EndpointView>)> =
        each(&signed_in.api, &Service::DELIVERING, "v1/endpoints", &query).await?;
    let entries = lists.entries.into_iter().flat_map(|(_, list)| list.records);
    Ok(Loaded { entries: entries.collect(), missing: lists.missing })
}

async fn load_failures(signed_in: &SignedIn) -> Result<Found, PageError> {
    let dead = vec![("state", "dead".to_owned())];
    Search::new(dead).limit(FAILURES).load(signed_in).await
}
