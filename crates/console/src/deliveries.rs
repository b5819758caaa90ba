//! One list of deliveries over the three services that deliver messages.

mod filter;
mod search;
mod times;
mod view;

use actix_web::{get, web};
use askama::Template;
use futures_util::future::{join, join_all};
use pages::{api::Service, text::Moment};

use serde::Deserialize;
use uuid::Uuid;

use crate::{
    Page, PageResult, Section, SignedIn,
    error::sentence,
    html,
    listing::{Sorted, load, merchant_filter},
    lookup::spellings,
};

pub(crate) use filter::{DeliveryFilter, FilterErrors, OUTCOMES, kinds, outcome_words};
pub(crate) use search::{Search, explain};
pub(crate) use times::{input_value_in, parse_time, rfc3339_in};
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
    sorted: Sorted,
    unavailable: Vec<Service>,
    /// The reason why a service rejected the filter.
    rejected: Option<String>,
    /// The returns of the order that the filter names.
    returns: Vec<String>,
    /// The first entry. Other pages than that with the newest have none, because newer deliveries do not appear
    /// on them.
    newest: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_deliveries);
}

#[derive(Default, Deserialize)]
struct ReturnList {
    returns: Vec<RelatedReturn>,
}

#[derive(Deserialize)]
struct RelatedReturn {
    rma_identifier: String,
}

/// The returns of the order whose number is the text of the filter. Messages about returns are found by the
/// number of the return. Without a response of the service there are none.
async fn returns_of_order(signed_in: &SignedIn, filter: &DeliveryFilter) -> Vec<String> {
    let is_other = filter.text.is_empty()
        || filter.text.starts_with("RMA-")
        || filter.text.parse::<Uuid>().is_ok();
    let Ok(merchant) = merchant_filter(signed_in, &filter.merchant) else { return Vec::new() };
    if is_other {
        return Vec::new();
    }
    let spellings = spellings(&filter.text);
    let lists = join_all(spellings.iter().map(async |order| {
        let query = [("order_identifier", order.as_str()), ("limit", "10")];
        let list: Result<ReturnList, _> =
            load(signed_in, Service::RmaEngine, merchant, "v1/returns", &query).await;
        list.unwrap_or_default()
    }))
    .await;
    let returns = lists.into_iter().flat_map(|list| list.returns);
    returns.map(|rma| rma.rma_identifier).collect()
}

#[get("/deliveries")]
async fn list_deliveries(signed_in: SignedIn, filter: web::Query<DeliveryFilter>) -> PageResult {
    let filter = filter.into_inner().trimmed().in_zone(signed_in.zone);
    if !filter.merchant.is_empty() {
        signed_in.merchant(&filter.merchant)?;
    }
    let page = signed_in.page(Section::Deliveries);
    let errors = filter.errors();
    let (found, returns) = if errors.is_empty() {
        let search = Search::new(&filter).load(&signed_in);
        let (found, returns) = join(search, returns_of_order(&signed_in, &filter)).await;
        (found?, returns)
    } else {
        (search::Found::default(), Vec::new())
    };
    let newest = found.deliveries.first().map(|(_, first)| first.id.to_string());
    let is_newest = filter.after.is_empty() && filter.order().is_newest();
    let newest = is_newest.then(|| newest.unwrap_or_default());
    let entries: Vec<_> = found
        .deliveries
        .into_iter()
        .map(|(service, delivery)| Entry::new(&page, service, delivery))
        .collect();
    let next = found.next.map(|next| next.to_string());
    let sorted = Sorted::new("/deliveries", &filter.pairs(), &filter.after, next.as_deref()).count(
        entries.len(),
        "delivery",
        "deliveries",
    );
    let rejected = found.rejected.as_deref().map(sentence);
    let unavailable = found.unavailable;
    html(&DeliveriesPage {
        page,
        filter,
        states: filter::STATES,
        errors,
        sorted,
        entries,
        unavailable,
        rejected,
        returns,
        newest,
    })
}
