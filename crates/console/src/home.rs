//! The start page of a merchant's people: the next step of the onboarding, the health of the endpoints
//! and recent failures.

mod checklist;
mod facts;
mod step;
mod steps;

use askama::Template;
use futures_util::future::{join, join4};
use pages::{
    api::{Part, Service},
    path,
};

use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    deliveries::{Delivery, DeliveryFilter, Entry, Search},
    endpoint_health::{Endpoint, EndpointList, EndpointRow},
    html,
    parts::{Loaded, each},
};

use checklist::Checklist;
use facts::{ClientList, Facts, MerchantView, OrderSummary, ReturnList};
use step::StepState;

const FAILURES: usize = 5;

#[derive(Template)]
#[template(path = "home.html")]
struct HomePage {
    page: Page,
    merchant: String,
    name: String,
    checklist: Checklist,
    endpoints: Loaded<EndpointRow>,
    failures: Loaded<Entry>,
}

pub(crate) async fn show(signed_in: &SignedIn, merchant: &str) -> PageResult {
    let (facts, (endpoints, failures)) = join(
        load_facts(signed_in, merchant),
        join(load_endpoints(signed_in, merchant), load_failures(signed_in)),
    )
    .await;
    let (facts, endpoints, failures) = (facts?, endpoints?, failures?);
    let zone = match &facts.merchant {
        Part::Loaded(merchant) => merchant.time_zone.as_str(),
        Part::Missing(_) => "",
    };
    let page = signed_in.page(Section::Overview).in_zone(zone);
    let entry = |(service, delivery)| Entry::new(&page, service, delivery);
    let failures = Loaded {
        entries: failures.entries.into_iter().map(entry).collect(),
        missing: failures.missing,
    };
    let checklist = Checklist::new(&page, merchant, &facts, &endpoints);
    let name = match &facts.merchant {
        Part::Loaded(merchant) => merchant.name.clone(),
        Part::Missing(_) => merchant.to_owned(),
    };
    let rows = endpoints.entries.into_iter().map(|endpoint| EndpointRow::new(&page, endpoint));
    html(&HomePage {
        endpoints: Loaded { entries: rows.collect(), missing: endpoints.missing },
        merchant: merchant.to_owned(),
        page,
        name,
        checklist,
        failures,
    })
}

async fn load_facts(signed_in: &SignedIn, merchant: &str) -> Result<Facts, PageError> {
    let api = &signed_in.api;
    let (path, clients_query) =
        (path!("v1", "merchants", merchant), [("merchant", merchant), ("limit", "100")]);
    let (settings, clients, orders, returns) = join4(
        api.get::<MerchantView>(Service::Auth, &path, &[]),
        api.get::<ClientList>(Service::Auth, "v1/clients", &clients_query),
        api.get_for::<OrderSummary>(Service::OrderIntake, merchant, "v1/order_summary", &[]),
        api.get_for::<ReturnList>(Service::RmaEngine, merchant, "v1/returns", &[("limit", "1")]),
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
) -> Result<Loaded<Endpoint>, PageError> {
    let query = [("merchant", merchant), ("limit", "200")];
    let lists: Loaded<(Service, EndpointList)> =
        each(&signed_in.api, &Service::DELIVERING, "v1/endpoints", &query).await?;
    let entries = lists.entries.into_iter().flat_map(|(_, list)| list.endpoints);
    Ok(Loaded { entries: entries.collect(), missing: lists.missing })
}

async fn load_failures(signed_in: &SignedIn) -> Result<Loaded<(Service, Delivery)>, PageError> {
    let filter = DeliveryFilter { state: "dead".to_owned(), ..DeliveryFilter::default() };
    let found = Search::new(&filter).limit(FAILURES).load(signed_in).await?;
    Ok(Loaded { entries: found.deliveries, missing: found.unavailable })
}
