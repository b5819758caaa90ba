//! One list of deliveries over the three services that deliver messages.

mod filter;
mod search;
mod view;

use actix_web::{HttpResponse, get, web};
use askama::Template;
use pages::{api::Service, text::Moment};

use crate::{
    App,
    error::{PageError, sentence},
    page::{Page, Section, html},
    person::SignedIn,
};

pub(crate) use filter::{
    DeliveryFilter, FilterErrors, OUTCOMES, input_value, kinds, outcome_words, parse_time, rfc3339,
};
pub(crate) use search::{Search, explain};
pub(crate) use view::{Delivery, DeliveryList};

/// A delivery with the service that sends it.
pub(crate) struct Entry {
    pub(crate) service: Service,
    pub(crate) delivery: Delivery,
    pub(crate) created: Moment,
    pub(crate) next: Option<Moment>,
}

impl Entry {
    pub(crate) fn new(page: &Page, service: Service, delivery: Delivery) -> Self {
        Self {
            service,
            created: page.moment(delivery.created_at),
            next: delivery.next_attempt_at.map(|at| page.moment(at)),
            delivery,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("/deliveries/{}/{}", self.service, self.delivery.id)
    }
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct DeliveriesPage {
    page: Page,
    filter: DeliveryFilter,
    states: &'static [(&'static str, &'static str)],
    errors: FilterErrors,
    entries: Vec<Entry>,
    /// The query of the next page, if there is one.
    older: Option<String>,
    unavailable: Vec<Service>,
    /// The reason why a service rejected the filter.
    rejected: Option<String>,
    /// The first entry. Later pages have none, because newer deliveries do not appear on them.
    newest: Option<String>,
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
    let filter = filter.into_inner().trimmed();
    if !filter.merchant.is_empty() {
        signed_in.merchant(&filter.merchant)?;
    }
    let page = Page::new(&app, &signed_in, Section::Deliveries);
    let errors = filter.errors();
    let found = if errors.is_empty() {
        Search::new(&filter).load(&signed_in).await?
    } else {
        search::Found::default()
    };
    let newest = found.deliveries.first().map(|(_, first)| first.id.to_string());
    let newest = filter.after.is_empty().then(|| newest.unwrap_or_default());
    let entries: Vec<_> = found
        .deliveries
        .into_iter()
        .map(|(service, delivery)| Entry::new(&page, service, delivery))
        .collect();
    let older = found.next.map(|next| filter.older(&next.to_string()));
    let rejected = found.rejected.as_deref().map(sentence);
    let unavailable = found.unavailable;
    html(&DeliveriesPage {
        page,
        filter,
        states: filter::STATES,
        errors,
        entries,
        older,
        unavailable,
        rejected,
        newest,
    })
}
