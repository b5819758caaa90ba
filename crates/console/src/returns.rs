//! A return: units, parcels, timeline, exchange orders and the reasons why it waits.

mod cancel;
mod columns;
mod export;
mod list;
mod review;
mod table;
mod timeline;
mod units;
mod waiting;
mod waive;

use actix_web::{get, web};
use api::returns::{RecordedDiscrepancy, Return};
use askama::Template;
use chrono::{DateTime, Utc};
use domain::returns::{Guarantee, GuaranteeState, Rma, RmaStatus, RmaUnit};
use futures_util::future::join5;
use pages::{
    api::{ApiError, Part, Service},
    path,
};
use serde::Deserialize;

use crate::{
    Page, PageResult, Section, SignedIn,
    actors::ClientNames,
    exchange_orders::{self, exchange_order_table},
    html,
    record_list::{Records, amount, load},
    states::Shown as _,
    table::Table,
};
use review::{ReviewForm, decision_text};
pub(crate) use table::{CONDITIONS, return_table, return_url};
use timeline::{Deliveries, Step};
use units::{parcel_table, unit_table};

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_return)
        .configure(cancel::routes)
        .configure(list::routes)
        .configure(export::routes)
        .configure(review::routes)
        .configure(waive::routes);
}

/// Units that were not canceled. For a canceled return, the units that it ended with.
fn active_units(rma: &Rma) -> impl Iterator<Item = &RmaUnit> {
    rma.units.iter().filter(|unit| unit.canceled_at == rma.canceled_at)
}

fn is_cancelable(rma: &Rma) -> bool {
    matches!(rma.status, RmaStatus::Requested | RmaStatus::Created)
}

/// The units that did not come back in time, with their guarantees.
pub(crate) fn due_units(rma: &Rma) -> impl Iterator<Item = (&RmaUnit, &Guarantee)> {
    let guarantees = active_units(rma).filter_map(|unit| Some((unit, unit.guarantee.as_ref()?)));
    guarantees.filter(|(_, guarantee)| guarantee.state == GuaranteeState::Due)
}

/// Whether a unit was exchanged and has not come back.
fn is_waivable(unit: &RmaUnit) -> bool {
    let states = [GuaranteeState::Open, GuaranteeState::Due];
    unit.guarantee.as_ref().is_some_and(|it| states.contains(&it.state))
}

fn may_waive(rma: &Rma) -> bool {
    active_units(rma).any(is_waivable)
}

/// The currency of the amounts. Returns of earlier versions have none.
pub(crate) fn currency(rma: &Rma) -> Option<&str> {
    Some(rma.currency.as_str()).filter(|currency| !currency.is_empty())
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
    rma: Rma,
    send_by: Option<DateTime<Utc>>,
    shipping_cost: String,
    review_form: Option<ReviewForm>,
    /// Tone and sentence.
    waiting: Vec<(&'static str, String)>,
    units: Table,
    parcels: Table,
    timeline: Part<(Vec<Step>, Option<String>)>,
    exchange_orders: Part<Table>,
    discrepancies: Part<Vec<RecordedDiscrepancy>>,
}

#[get("/merchants/{merchant}/returns/{rma}")]
async fn show_return(
    signed_in: SignedIn,
    path: web::Path<(String, String)>,
    later: web::Query<Later>,
) -> PageResult {
    let (merchant, identifier) = path.into_inner();
    let own = Some(signed_in.merchant(&merchant)?);
    let page = signed_in.page(Section::Returns);
    let of_return = [("rma_identifier", identifier.as_str())];
    let open = [("rma_identifier", identifier.as_str()), ("state", "open")];
    let timeline_path = path!("v1", "returns", identifier, "timeline");
    let timeline_page = [("limit", "200"), ("after", later.after.as_str())];
    let (rma, timeline, deliveries, exchange_orders, discrepancies) = join5(
        load_return(&signed_in, &merchant, &identifier),
        load::<Records<_>>(&signed_in, Service::RmaEngine, own, &timeline_path, &timeline_page),
        Deliveries::load(&signed_in, &merchant, &identifier),
        load::<Records<_>>(&signed_in, Service::Exchange, own, exchange_orders::PATH, &of_return),
        load::<Records<_>>(&signed_in, Service::RmaEngine, own, "v1/discrepancies", &open),
    )
    .await;
    let Return { rma, send_by } = rma?;
    let currency = currency(&rma);
    let entries = timeline.iter().flat_map(|timeline| &timeline.records);
    let names = ClientNames::load(&signed_in, entries.flat_map(timeline::Entry::actors)).await;
    let steps = timeline.map(|Records { records, next }| {
        (timeline::steps(records, &deliveries.unwrap_or_default(), &names, &page), next)
    });
    let label = "Exchange orders of the return";
    let exchange_orders =
        exchange_orders.map(|Records { records, .. }| exchange_order_table(label, &records, &page));
    let shipping_cost = amount(rma.return_shipping_cost_cents, currency);
    html(&ReturnPage {
        shipping_cost: match &rma.cost_rule {
            Some(rule) => format!("{shipping_cost} (rule {rule})"),
            None => shipping_cost,
        },
        review_form: ReviewForm::new(&signed_in.person, &rma),
        waiting: waiting::reasons(&rma),
        units: unit_table(&rma, &merchant, currency),
        parcels: parcel_table(&rma, &page),
        send_by: send_by.filter(|_| !rma.has_scan()),
        timeline: Part::new(steps)?,
        exchange_orders: Part::new(exchange_orders)?,
        discrepancies: Part::new(discrepancies.map(|list| list.records))?,
        page,
        merchant,
        rma,
    })
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
mod tests {
    use actix_web::{HttpResponse, http::StatusCode};
    use serde_json::json;

    use super::*;
    use crate::fixtures;

    async fn nothing() -> HttpResponse {
        HttpResponse::Ok().json(json!({ "records": [] }))
    }

    /// A return to a warehouse that a rule names, without a timeline.
    fn engine(services: &mut web::ServiceConfig) {
        let show = async || {
            let return_to = json!({ "warehouse": "reno", "rule": "outlet",
                                    "address_lines": ["Dock <7>", "Reno, NV 89501"] });
            let mut rma = fixtures::rma("CREATED", &[json!({})]);
            rma.return_to = serde_json::from_value(return_to).ok();
            HttpResponse::Ok().json(rma)
        };
        services
            .route("/v1/returns/RMA-1", web::get().to(show))
            .route("/v1/returns/RMA-1/timeline", web::get().to(nothing))
            .route("/v1/discrepancies", web::get().to(nothing));
    }

    #[actix_web::test]
    async fn a_return_shows_the_warehouse_that_a_rule_names() {
        let app = fixtures::app_with_services(engine);
        let path = "/merchants/acme/returns/RMA-1";
        let (status, page) = fixtures::get_page(app, routes, path).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        assert!(
            page.contains("reno (rule outlet)<br>Dock &#60;7&#62;<br>Reno, NV 89501"),
            "{page}"
        );
    }
}
