//! A return: units, parcels, timeline, exchange orders and the reasons why it waits.

mod cancel;
mod timeline;
mod units;
mod waiting;

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use domain::returns::Withdrawal;
use futures_util::future::join5;
use pages::{
    api::{ApiError, Part, Service},
    path,
};
use serde::Deserialize;

use crate::{
    Page, PageResult, Section, SignedIn,
    actors::ClientNames,
    discrepancies::Discrepancy,
    exchange_orders::{self, exchange_order_table},
    html,
    listing::{Records, amount, load, words},
    table::Table,
};
use timeline::{Deliveries, Step};
use units::{Unit, parcel_table, unit_table};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_return).configure(cancel::routes);
}

/// A return as rma-engine describes it.
#[derive(Debug, Deserialize)]
struct Return {
    rma_identifier: String,
    status: String,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
    return_method: String,
    #[serde(default)]
    return_shipping_cost_cents: i64,
    giftee_email: Option<String>,
    /// The person who withdrew from the contract in the portal.
    withdrawal: Option<Withdrawal>,
    #[serde(default)]
    managed_receiving: bool,
    receiving_closed_at: Option<DateTime<Utc>>,
    canceled_at: Option<DateTime<Utc>>,
    units: Vec<Unit>,
}

impl Return {
    /// Units that were not canceled. For a canceled return, the units that it ended with.
    fn active_units(&self) -> impl Iterator<Item = &Unit> {
        self.units.iter().filter(|unit| unit.canceled_at == self.canceled_at)
    }

    fn status_words(&self) -> String {
        words(&self.status)
    }

    fn tone(&self) -> &'static str {
        status_tone(&self.status)
    }

    fn is_cancelable(&self) -> bool {
        self.status == "CREATED"
    }
}

/// The colour of a return's status.
pub(crate) fn status_tone(status: &str) -> &'static str {
    match status {
        "REFUNDED" => "good",
        "PARTIAL_REFUND" => "warn",
        "CREATED" => "info",
        _ => "",
    }
}

#[derive(Deserialize)]
struct Later {
    /// The last timeline entry of the previous page.
    #[serde(default)]
    after: String,
}

#[derive(Template)]
#[template(path = "return.html")]
struct ReturnPage {
    page: Page,
    merchant: String,
    rma: Return,
    shipping_cost: String,
    /// Tone and sentence.
    waiting: Vec<(&'static str, String)>,
    units: Table,
    parcels: Table,
    timeline: Part<(Vec<Step>, Option<String>)>,
    exchange_orders: Part<Table>,
    discrepancies: Part<Vec<Discrepancy>>,
}

#[get("/merchants/{merchant}/returns/{rma}")]
async fn show_return(
    signed_in: SignedIn,
    path: web::Path<(String, String)>,
    later: web::Query<Later>,
) -> PageResult {
    let (merchant, identifier) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let page = signed_in.page(Section::Lookup);
    let of_return = [("rma_identifier", identifier.as_str())];
    let open = [("rma_identifier", identifier.as_str()), ("state", "open")];
    let timeline_path = path!("v1", "returns", identifier, "timeline");
    let timeline_page = [("limit", "200"), ("after", later.after.as_str())];
    let (rma, timeline, deliveries, exchange_orders, discrepancies) = join5(
        with_currency(&signed_in, &merchant, &identifier),
        load::<Records<_>>(&signed_in, Service::RmaEngine, own, &timeline_path, &timeline_page),
        Deliveries::load(&signed_in, &merchant, &identifier),
        load::<Records<_>>(&signed_in, Service::Exchange, own, exchange_orders::PATH, &of_return),
        load::<Records<_>>(&signed_in, Service::RmaEngine, own, "v1/discrepancies", &open),
    )
    .await;
    let (rma, currency) = rma?;
    let currency = currency.as_deref();
    let entries = timeline.iter().flat_map(|timeline| &timeline.records);
    let names = ClientNames::load(&signed_in, entries.map(timeline::Entry::actor)).await;
    let steps = timeline.map(|Records { records, next }| {
        (timeline::steps(records, &deliveries.unwrap_or_default(), &names, &page), next)
    });
    let label = "Exchange orders of the return";
    let exchange_orders =
        exchange_orders.map(|Records { records, .. }| exchange_order_table(label, &records, &page));
    html(&ReturnPage {
        shipping_cost: amount(rma.return_shipping_cost_cents, currency),
        waiting: waiting::reasons(&rma),
        units: unit_table(&rma, &merchant, currency),
        parcels: parcel_table(&rma, &page),
        timeline: Part::new(steps)?,
        exchange_orders: Part::new(exchange_orders)?,
        discrepancies: Part::new(discrepancies.map(|list| list.records))?,
        page,
        merchant,
        rma,
    })
}

#[derive(Deserialize)]
struct OrderCurrency {
    currency: String,
}

/// The return, and the currency of its order, which the return does not name. Amounts are shown without a
/// currency if it cannot be found out.
async fn with_currency(
    signed_in: &SignedIn,
    merchant: &str,
    identifier: &str,
) -> Result<(Return, Option<String>), ApiError> {
    let rma = load_return(signed_in, merchant, identifier).await?;
    let order = rma.units.first().map(|unit| unit.order_identifier.as_str()).unwrap_or_default();
    let path = path!("v1", "orders", order);
    let order: Result<OrderCurrency, _> =
        load(signed_in, Service::RmaEngine, Some(merchant), &path, &[]).await;
    Ok((rma, order.ok().map(|order| order.currency)))
}

async fn load_return(
    signed_in: &SignedIn,
    merchant: &str,
    identifier: &str,
) -> Result<Return, ApiError> {
    let path = path!("v1", "returns", identifier);
    load(signed_in, Service::RmaEngine, Some(merchant), &path, &[]).await
}

#[cfg(test)]
fn sample(status: &str, units: serde_json::Value) -> Return {
    let rma = serde_json::json!({
        "rma_identifier": "RMA-1", "status": status, "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "return_method": "mail-back", "units": units,
    });
    serde_json::from_value(rma).unwrap()
}
