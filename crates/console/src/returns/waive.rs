//! Waives exchanged units that have not come back, after a page that says what happens.

use actix_web::{get, post, web};
use askama::Template;
use domain::returns::{Guarantee, GuaranteeState, Rma, RmaUnit, UnitId};
use pages::{
    api::{ApiError, Service},
    form::{Field, Fields},
    path,
};
use reqwest::Method;
use serde_json::json;

use super::{active_units, currency, is_waivable, load_return};
use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence, html,
    person::Person, record_list::amount, rejected,
};

/// The name of the check boxes.
const UNIT: &str = "unit";

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(confirm_waiver).service(waive);
}

/// A check box for a unit.
struct Choice {
    /// The identifier of the unit as JSON.
    value: String,
    title: String,
    amount: String,
    about: String,
    is_chosen: bool,
}

impl Choice {
    fn new(rma: &Rma, unit: &RmaUnit, guarantee: &Guarantee, chosen: Option<&[UnitId]>) -> Self {
        let UnitId { order_identifier, order_line_item_identifier, unit: number } = &unit.id;
        let due =
            if guarantee.state == GuaranteeState::Due { ", not returned in time" } else { "" };
        Self {
            value: json!(unit.id).to_string(),
            title: if unit.title.is_empty() { unit.sku.clone() } else { unit.title.clone() },
            amount: amount(guarantee.amount_cents, currency(rma)),
            about: format!(
                "Order {order_identifier}, line {order_line_item_identifier}, unit {number}{due}"
            ),
            is_chosen: chosen.is_none_or(|chosen| chosen.contains(&unit.id)),
        }
    }
}

#[derive(Template)]
#[template(path = "return_waive.html")]
struct WaivePage {
    page: Page,
    merchant: String,
    rma: Rma,
    /// The units that can be waived.
    choices: Vec<Choice>,
    units_error: Option<String>,
    note: Field,
    /// The reason why units were not waived.
    problem: Option<String>,
}

impl WaivePage {
    /// The page with all units chosen, or with those of a rejected form.
    fn new(page: Page, merchant: String, rma: Rma, chosen: Option<&[UnitId]>) -> Self {
        let waivable = active_units(&rma).filter(|unit| is_waivable(unit));
        let choice =
            |unit: &RmaUnit| Some(Choice::new(&rma, unit, unit.guarantee.as_ref()?, chosen));
        let choices = waivable.filter_map(choice).collect();
        let note = Field::default();
        Self { page, merchant, choices, rma, units_error: None, note, problem: None }
    }
}

#[get("/merchants/{merchant}/returns/{rma}/waive")]
async fn confirm_waiver(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let (merchant, identifier) = path.into_inner();
    check_role(&signed_in.person)?;
    let rma = load_return(&signed_in, signed_in.merchant(&merchant)?, &identifier).await?.rma;
    html(&WaivePage::new(signed_in.page(Section::Returns), merchant, rma, None))
}

#[post("/merchants/{merchant}/returns/{rma}/waive")]
async fn waive(posted: Posted<Fields>, path: web::Path<(String, String)>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let (merchant, identifier) = path.into_inner();
    let own = signed_in.merchant(&merchant)?;
    let sent = form.pairs().iter().filter(|(name, _)| name == UNIT);
    let chosen: Vec<UnitId> =
        sent.filter_map(|(_, value)| serde_json::from_str(value).ok()).collect();
    let mut note = Field::new(form.text("note"));
    let mut units_error = None;
    let mut problem = None;
    if chosen.is_empty() {
        units_error = Some("Choose at least one unit.".to_owned());
    } else {
        let body = json!({ "note": note.value, "units": chosen });
        let waive_path = path!("v1", "returns", identifier, "waive");
        let waived: Result<Rma, _> = signed_in
            .api
            .send_json(Service::RmaEngine, Method::POST, Some(own), &waive_path, &body)
            .await;
        match waived {
            Ok(rma) if came_back(&rma, &chosen) => {
                problem = Some("A unit has come back meanwhile.".to_owned());
            }
            Ok(_) => {
                let shown = path!("merchants", merchant, "returns", identifier);
                return Ok(Notice::UnitsWaived.redirect(&format!("/{shown}")));
            }
            Err(ApiError::Conflict(body)) => problem = Some(sentence(&body.message)),
            Err(ApiError::Invalid(body)) => {
                note.error = body.field("$.note");
                problem = note.is_valid().then(|| sentence(&body.message));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let rma = load_return(&signed_in, own, &identifier).await?.rma;
    let page = WaivePage::new(signed_in.page(Section::Returns), merchant, rma, Some(&chosen));
    rejected(&WaivePage { note, units_error, problem, ..page })
}

/// Whether a unit was not waived, because a carrier or the warehouse has it.
fn came_back(rma: &Rma, chosen: &[UnitId]) -> bool {
    let mut units = rma.units.iter().filter(|unit| chosen.contains(&unit.id));
    units.any(|unit| unit.guarantee.as_ref().is_some_and(|it| it.state == GuaranteeState::Met))
}

fn check_role(person: &Person) -> Result<(), PageError> {
    if person.may_manage() {
        Ok(())
    } else {
        Err(PageError::Denied("your role cannot waive units".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpResponse, http::StatusCode};
    use serde_json::Value;

    use super::*;
    use crate::fixtures;

    const PATH: &str = "/merchants/acme/returns/RMA-1/waive";

    fn unit(number: i32, state: &str) -> Value {
        let started_at = "2026-11-16T08:00:00Z";
        let guarantee = json!({ "state": state, "started_at": started_at, "amount_cents": 500 });
        json!({ "unit": number, "title": format!("Boot {number}"), "guarantee": guarantee })
    }

    /// A return of which one unit has come back. A second one comes back before the waiver.
    fn engine(services: &mut web::ServiceConfig) {
        let before = async || rma(["due", "open", "met"]);
        let after = async || rma(["waived", "met", "met"]);
        services
            .route("/v1/returns/RMA-1", web::get().to(before))
            .route("/v1/returns/RMA-1/waive", web::post().to(after));
    }

    fn refusing_engine(services: &mut web::ServiceConfig) {
        let before = async || rma(["due", "open", "met"]);
        let refuse = async || {
            let error =
                json!({ "field": "$.note", "code": "invalid", "detail": "must not be empty" });
            let body = json!({ "message": "invalid", "errors": [error] });
            HttpResponse::UnprocessableEntity().json(body)
        };
        services
            .route("/v1/returns/RMA-1", web::get().to(before))
            .route("/v1/returns/RMA-1/waive", web::post().to(refuse));
    }

    fn rma(states: [&str; 3]) -> HttpResponse {
        let units: Vec<_> = (1..).zip(states).map(|(number, state)| unit(number, state)).collect();
        HttpResponse::Ok().json(fixtures::rma("CREATED", &units))
    }

    fn value(number: i32) -> String {
        let id = UnitId {
            order_identifier: "A".to_owned(),
            order_line_item_identifier: "1".to_owned(),
            unit: number,
        };
        json!(id).to_string()
    }

    async fn post(
        engine: fn(&mut web::ServiceConfig),
        fields: &[(&str, &str)],
    ) -> (StatusCode, String, String) {
        fixtures::post(fixtures::app_with_services(engine), routes, PATH, fields).await
    }

    #[actix_web::test]
    async fn only_units_that_have_not_come_back_are_offered() {
        let (status, _, page) = post(engine, &[("note", "lost")]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.contains("Choose at least one unit."), "{page}");
        assert!(page.contains("Boot 1") && page.contains("Boot 2") && !page.contains("Boot 3"));
        assert!(!page.contains("checked"), "{page}");
    }

    #[actix_web::test]
    async fn a_rejected_form_keeps_the_chosen_units() {
        let (status, _, page) = post(refusing_engine, &[("unit", &value(2)), ("note", " ")]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.contains("ust not be empty"), "{page}");
        assert_eq!(page.matches(" checked").count(), 1, "{page}");
    }

    #[actix_web::test]
    async fn a_unit_that_came_back_meanwhile_is_not_waived() {
        let (status, location, _) = post(engine, &[("unit", &value(1)), ("note", "lost")]).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert!(location.starts_with("/merchants/acme/returns/RMA-1"), "{location}");
        let (status, _, page) = post(engine, &[("unit", &value(2)), ("note", "lost")]).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(page.contains("A unit has come back meanwhile."), "{page}");
    }
}
