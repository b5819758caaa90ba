//! An order: the snapshot that the merchant sent, its units, refunds, returns, exchange orders and messages.

mod document;
mod link;
mod list;
mod messages;
mod snapshot;
mod start;
mod units;

use actix_web::{get, web};
use api::{
    orders::StoredOrder,
    returns::{OrderView, RecordedDiscrepancy},
    warehouse::RecordView,
};
use askama::Template;
use futures_util::future::join5;
use pages::{
    api::{Part, Service},
    path,
};

use crate::{
    Page, PageResult, Section, SignedIn,
    exchange_orders::{self, exchange_order_table},
    html,
    record_list::{Records, found, load},
    table::Table,
    warehouse::find_records,
};
use messages::Messages;
use snapshot::Snapshot;
use units::OrderUnits;

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_order)
        .configure(list::routes)
        .configure(start::routes)
        .configure(link::routes);
}

#[derive(Template)]
#[template(path = "order.html")]
struct OrderPage {
    page: Page,
    merchant: String,
    identifier: String,
    snapshot: Part<Snapshot>,
    /// Nothing while rma-engine does not know the order.
    units: Part<Option<OrderUnits>>,
    exchange_orders: Part<Table>,
    messages: Messages,
    discrepancies: Part<Vec<RecordedDiscrepancy>>,
    records: Part<Vec<RecordView>>,
}

#[get("/merchants/{merchant}/orders/{order}")]
async fn show_order(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, identifier) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let order_path = path!("v1", "orders", identifier);
    let of_order = [("original_order_id", identifier.as_str())];
    let about_order = [("order_identifier", identifier.as_str()), ("state", "open")];
    let (stored, view, exchange_orders, discrepancies, records) = join5(
        load::<StoredOrder>(&signed_in, Service::OrderIntake, own, &order_path, &[]),
        load::<OrderView>(&signed_in, Service::RmaEngine, own, &order_path, &[]),
        load::<Records<_>>(&signed_in, Service::Exchange, own, exchange_orders::PATH, &of_order),
        load::<Records<_>>(&signed_in, Service::RmaEngine, own, "v1/discrepancies", &about_order),
        find_records(&signed_in, &merchant, "order_identifier", &identifier),
    )
    .await;
    let page = signed_in.page(Section::Orders);
    let returns = view.iter().flat_map(|view| &view.returns);
    let returns: Vec<_> = returns.map(|it| it.rma_identifier.clone()).collect();
    let messages = Messages::load(&signed_in, &merchant, &identifier, &returns, &page).await?;
    let label = "Exchange orders of the order";
    let exchange_orders =
        exchange_orders.map(|Records { records, .. }| exchange_order_table(label, &records, &page));
    html(&OrderPage {
        snapshot: Part::new(stored.map(|stored| Snapshot::new(stored, &merchant, &page)))?,
        units: Part::new(
            found(view).map(|view| view.map(|view| OrderUnits::new(view, &merchant, &page))),
        )?,
        exchange_orders: Part::new(exchange_orders)?,
        messages,
        discrepancies: Part::new(discrepancies.map(|list| list.records))?,
        records: Part::new(records)?,
        page,
        merchant,
        identifier,
    })
}
