//! One list of deliveries over the three services that deliver messages.

mod filter;
mod search;

use actix_web::{get, web};
use api::delivery::DeliveryView;
use askama::Template;
use domain::returns::Rma;
use futures_util::future::{join, join_all};
use pages::{api::Service, form::Fields, path, text::count};
use uuid::Uuid;

use crate::{
    Page, PageResult, Section, SignedIn,
    error::sentence,
    filter::Filter,
    html,
    lookup::spellings,
    markup::{badge, link, text, text_or_dash},
    record_list::{Records, Sorted, load, merchant_filter},
    states::Shown as _,
    table::{Columns, Table},
};

pub(crate) use filter::{CONDITIONS, conditions, outcome_words};
pub(crate) use search::{Found, Search, explain};

/// A delivery with the service that sends it.
pub(crate) struct Entry {
    pub(crate) service: Service,
    pub(crate) delivery: DeliveryView,
}

impl Entry {
    pub(crate) fn url(&self) -> String {
        format!("/deliveries/{}/{}", self.service, self.delivery.id)
    }

    /// The status code or the outcome of the last attempt.
    pub(crate) fn last_response(&self) -> String {
        match (self.delivery.last_status, &self.delivery.last_outcome) {
            (Some(status), _) => status.to_string(),
            (None, Some(outcome)) => outcome_words(outcome).to_owned(),
            (None, None) => "not attempted yet".to_owned(),
        }
    }
}

#[derive(Template)]
#[template(path = "deliveries.html")]
struct DeliveriesPage {
    page: Page,
    filter: Filter,
    table: Table,
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

/// The returns of the order whose number is the text of the filter. Messages about returns are found by the
/// number of the return. Without a response of the service there are none.
async fn returns_of_order(signed_in: &SignedIn, filter: &Filter) -> Vec<String> {
    let order = filter.value("text");
    let is_other = order.is_empty() || order.starts_with("RMA-") || order.parse::<Uuid>().is_ok();
    let Ok(merchant) = merchant_filter(signed_in, filter.value("merchant")) else {
        return Vec::new();
    };
    if is_other {
        return Vec::new();
    }
    let spellings = spellings(order);
    let lists = join_all(spellings.iter().map(async |order| {
        let query = [("order_identifier", order.as_str()), ("limit", "10")];
        let list: Result<Records<Rma>, _> =
            load(signed_in, Service::RmaEngine, merchant, "v1/returns", &query).await;
        list.unwrap_or_default()
    }))
    .await;
    let returns = lists.into_iter().flat_map(|list| list.records);
    returns.map(|rma| rma.rma_identifier).collect()
}

#[get("/deliveries")]
async fn list_deliveries(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let filter = Filter::read(&signed_in, "/deliveries", CONDITIONS, &query);
    let filter = filter.with_zone(&query).with_order(&query).with_time_order();
    let filter = filter.with_cursor_of::<Uuid>();
    if !filter.value("merchant").is_empty() {
        signed_in.merchant(filter.value("merchant"))?;
    }
    let page = signed_in.page(Section::Deliveries);
    let (found, returns) = if filter.is_valid() {
        let search =
            Search::new(filter.request()).after(&filter.after, filter.order()).load(&signed_in);
        let (found, returns) = join(search, returns_of_order(&signed_in, &filter)).await;
        (found?, returns)
    } else {
        (Found::default(), Vec::new())
    };
    let is_newest = filter.after.is_empty() && filter.order().is_newest();
    let next = found.next.map(|next| next.to_string());
    let nouns = ("delivery", "deliveries");
    let newest = found.deliveries.first().map(|first| first.delivery.id.to_string());
    html(&DeliveriesPage {
        sorted: filter.sorted(next.as_deref(), found.deliveries.len(), nouns),
        table: delivery_table(&found.deliveries, &page),
        unavailable: found.unavailable,
        rejected: found.rejected.as_deref().map(sentence),
        newest: is_newest.then(|| newest.unwrap_or_default()),
        page,
        filter,
        returns,
    })
}

fn delivery_table(entries: &[Entry], page: &Page) -> Table {
    let merchant = |it: &Entry| {
        let merchant = &it.delivery.merchant;
        link(format!("/{}", path!("merchants", merchant)), merchant)
    };
    Table::of("Deliveries", entries)
        .live(10, |it| format!("delivery-{}", it.delivery.id))
        .cell("State", |it| badge(it.delivery.tone(), it.delivery.state))
        .head("Event", |it| link(it.url(), &it.delivery.event))
        .cell("Merchant", merchant)
        .ordering_key()
        .cell("Last response", |it| {
            let attempts = it.delivery.attempt_count.filter(|number| *number > 0);
            let after = |number| format!("after {}", count(number, "attempt", "attempts"));
            let attempts = attempts.map(|it| text(after(it)).classed("small muted nowrap"));
            let next = it.delivery.next_attempt_at;
            let next =
                next.map(|at| text("next attempt").and(page.time(at)).classed("small muted"));
            text(it.last_response()).and_some(attempts).below_some(next)
        })
        .cell("Created", |it| page.time(it.delivery.created_at))
        .table()
}

impl Columns<'_, Entry> {
    /// The column with the ordering key.
    pub(crate) fn ordering_key(self) -> Self {
        self.wrapped("Ordering key", |it| text_or_dash(it.delivery.ordering_key.as_ref()))
    }

    /// The columns with the last response and the time.
    pub(crate) fn response(self, page: &Page) -> Self {
        self.cell("Last response", |it| text(it.last_response()))
            .cell("Created", |it| page.time(it.delivery.created_at))
    }
}
