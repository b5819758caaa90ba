//! One list of deliveries over the three services that deliver messages.

use actix_web::{HttpResponse, get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use futures_util::future::join_all;
use pages::{
    api::{ApiError, Service},
    text::Moment,
};
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use uuid::Uuid;

use crate::{
    App,
    error::PageError,
    page::{Page, Section, html},
    person::SignedIn,
};

const PAGE: usize = 50;

/// The filter. Every field is part of the URL.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct DeliveryFilter {
    pub(crate) merchant: String,
    pub(crate) kind: String,
    pub(crate) state: String,
    pub(crate) status: String,
    pub(crate) outcome: String,
    pub(crate) event: String,
    pub(crate) ordering_key: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// The last delivery of the previous page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) after: String,
}

impl DeliveryFilter {
    pub(crate) fn pairs(&self) -> [(&'static str, &str); 9] {
        [
            ("merchant", &self.merchant),
            ("kind", &self.kind),
            ("state", &self.state),
            ("status", &self.status),
            ("outcome", &self.outcome),
            ("event", &self.event),
            ("ordering_key", &self.ordering_key),
            ("from", &self.from),
            ("to", &self.to),
        ]
    }

    /// The filter as the query of a URL, without the page.
    pub(crate) fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.pairs().into_iter().filter(|(_, value)| !value.is_empty()));
        query.finish()
    }
}

/// A delivery as the services describe it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Delivery {
    pub(crate) id: Uuid,
    pub(crate) merchant: String,
    pub(crate) kind: String,
    pub(crate) event: String,
    pub(crate) ordering_key: Option<String>,
    pub(crate) state: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) next_attempt_at: Option<DateTime<Utc>>,
    pub(crate) attempt_count: Option<i32>,
    pub(crate) last_outcome: Option<String>,
    pub(crate) last_status: Option<i32>,
    pub(crate) last_error: Option<String>,
    pub(crate) waiting: Option<Waiting>,
}

/// The reason why a pending delivery waits.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) detail: String,
}

impl Delivery {
    pub(crate) fn tone(&self) -> &'static str {
        match self.state.as_str() {
            "delivered" => "good",
            "dead" => "bad",
            _ if self.attempt_count.unwrap_or(0) > 0 => "warn",
            _ => "info",
        }
    }

    /// The last response in a few words.
    pub(crate) fn last_response(&self) -> String {
        match (self.last_status, &self.last_outcome) {
            (Some(status), _) => status.to_string(),
            (None, Some(outcome)) => outcome.replace('_', " "),
            (None, None) => "not attempted yet".to_owned(),
        }
    }
}

#[derive(Deserialize)]
struct DeliveryPage {
    deliveries: Vec<Delivery>,
    next: Option<String>,
}

/// A delivery with the service that sends it.
pub(crate) struct Entry {
    pub(crate) service: Service,
    pub(crate) delivery: Delivery,
    pub(crate) created: Moment,
    pub(crate) next: Option<Moment>,
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct DeliveriesPage {
    page: Page,
    filter: DeliveryFilter,
    entries: Vec<Entry>,
    /// The last entry of this page, if there are more.
    older: Option<Uuid>,
    unavailable: Vec<Service>,
    invalid: Option<String>,
    newest: String,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_deliveries);
}

#[get("/deliveries")]
async fn list_deliveries(
    app: web::Data<App>,
    signed_in: SignedIn,
    filter: web::Query<DeliveryFilter>,
) -> Result<HttpResponse, PageError> {
    let filter = filter.into_inner();
    let page = Page::new(&app, &signed_in, Section::Deliveries);
    let mut listed = Listed::default();
    for (service, result) in load(&signed_in, &filter).await {
        listed.add(service, result)?;
    }
    // Ids are UUIDv7, so one order and one cursor serve all services.
    listed.deliveries.sort_by_key(|(_, delivery)| std::cmp::Reverse(delivery.id));
    let has_more = listed.has_more || listed.deliveries.len() > PAGE;
    listed.deliveries.truncate(PAGE);
    let older = listed.deliveries.last().map(|(_, last)| last.id).filter(|_| has_more);
    let newest = listed.deliveries.first().map(|(_, first)| first.id.to_string());
    let entries = listed
        .deliveries
        .into_iter()
        .map(|(service, delivery)| Entry {
            service,
            created: page.moment(delivery.created_at),
            next: delivery.next_attempt_at.map(|at| page.moment(at)),
            delivery,
        })
        .collect();
    let (unavailable, invalid) = (listed.unavailable, listed.invalid);
    let newest = newest.unwrap_or_default();
    html(&DeliveriesPage { page, filter, entries, older, unavailable, invalid, newest })
}

type LoadedPage = (Service, Result<DeliveryPage, ApiError>);

async fn load(signed_in: &SignedIn, filter: &DeliveryFilter) -> Vec<LoadedPage> {
    let limit = PAGE.to_string();
    let pairs = filter.pairs();
    let query: Vec<(&str, &str)> = pairs
        .into_iter()
        .chain([("after", filter.after.as_str()), ("limit", limit.as_str())])
        .collect();
    join_all(Service::DELIVERING.map(async |service| {
        (service, signed_in.api.get(service, "v1/deliveries", &query).await)
    }))
    .await
}

#[derive(Default)]
struct Listed {
    deliveries: Vec<(Service, Delivery)>,
    has_more: bool,
    unavailable: Vec<Service>,
    /// The reason why a service rejected the filter.
    invalid: Option<String>,
}

impl Listed {
    /// Adds the page of one service. A service that does not respond leaves the others' deliveries.
    fn add(
        &mut self,
        service: Service,
        result: Result<DeliveryPage, ApiError>,
    ) -> Result<(), PageError> {
        match result {
            Ok(list) => {
                self.has_more |= list.next.is_some();
                self.deliveries.extend(list.deliveries.into_iter().map(|one| (service, one)));
            }
            Err(ApiError::Unavailable { service }) => self.unavailable.push(service),
            Err(ApiError::Invalid(body)) => self.invalid = Some(body.message),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
