//! The second step of a withdrawal: the shopper sees the units and confirms.

use actix_web::{HttpResponse, get, http::StatusCode, post, web};
use askama::Template;
use domain::returns::Withdrawal;
use pages::{
    api::{ApiError, Service},
    form::Fields,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    WithdrawQuery, check_offered,
    units::{WithdrawLine, lines, requested},
    url,
};
use crate::{
    App,
    check::CONFIRMATION_DEADLINE,
    error::PageError,
    merchant::Portal,
    order::{self, Order},
    page::{Page, html_with, redirect},
    returns::return_url,
    sent::Form,
    visit::Visit,
};

#[derive(Template)]
#[template(path = "withdraw_confirm.html")]
struct ConfirmPage {
    page: Page,
    order: String,
    person: Withdrawal,
    lines: Vec<WithdrawLine>,
    /// The amount that was paid for all units that can be returned.
    paid: Option<String>,
    methods: Vec<MethodChoice>,
    /// Makes a form that is sent twice one withdrawal.
    key: String,
    /// The reason why nothing was sent.
    message: Option<String>,
    /// The path of this page.
    action: String,
    /// The path of the first step, to correct the data.
    back: String,
}

/// The page of a confirmation with an unknown result.
#[derive(Template)]
#[template(path = "withdraw_again.html")]
struct AgainPage {
    page: Page,
    /// The form as it was sent.
    fields: Vec<(String, String)>,
    action: String,
}

/// A return method that every unit can have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MethodChoice {
    method: String,
    /// Absent if the return is free.
    cost: Option<String>,
    cost_cents: i64,
    is_chosen: bool,
}

#[derive(Deserialize)]
struct NewReturn {
    rma_identifier: String,
}

/// Why the page is shown, and the form that it keeps.
struct Shown<'a> {
    status: StatusCode,
    message: Option<&'static str>,
    sent: Option<&'a Fields>,
}

#[get("/{merchant}/withdraw/confirm")]
pub(super) async fn show_confirm(
    visit: Visit,
    query: web::Query<WithdrawQuery>,
) -> Result<HttpResponse, PageError> {
    show(&visit, &query.order, Shown { status: StatusCode::OK, message: None, sent: None }).await
}

#[post("/{merchant}/withdraw/confirm")]
pub(super) async fn confirm(
    app: web::Data<App>,
    mut visit: Visit,
    sent: Form<Fields>,
) -> Result<HttpResponse, PageError> {
    let sent = sent.0;
    check_offered(&visit)?;
    let order = sent.text("order");
    let units = requested(&sent).ok_or(PageError::BadForm)?;
    if units.is_empty() {
        let (status, message) = (StatusCode::UNPROCESSABLE_ENTITY, Some("withdraw-none"));
        return show(&visit, order, Shown { status, message, sent: Some(&sent) }).await;
    }
    let Ok(key) = sent.text("key").parse() else { return Err(PageError::BadForm) };
    let Some(person) = &visit.shopper.withdrawal else {
        return Ok(redirect(&url(&visit, "/withdraw", order)));
    };
    let body =
        json!({ "return_method": sent.text("method"), "units": units, "withdrawal": person });
    match send(&visit, key, &body).await {
        Ok(made) => {
            // The return has the person now.
            visit.shopper.withdrawal = None;
            let next = return_url(&visit, &made.rma_identifier, "/withdrawal");
            visit.with_cookie(&app, redirect(&next))
        }
        Err(ApiError::Unavailable { .. }) => show_unknown(&visit, order, &sent),
        Err(ApiError::Conflict(refusal) | ApiError::Invalid(refusal)) => {
            tracing::info!(message = refusal.message, "a withdrawal was not possible");
            let (status, message) = (StatusCode::CONFLICT, Some("withdraw-changed"));
            show(&visit, order, Shown { status, message, sent: None }).await
        }
        Err(error) => Err(error.into()),
    }
}

async fn send(visit: &Visit, key: Uuid, body: &Value) -> Result<NewReturn, ApiError> {
    let api = visit.api.clone().with_deadline(CONFIRMATION_DEADLINE);
    let api = api.with_header("idempotency-key", key.to_string());
    let merchant = Some(visit.merchant());
    api.send_json(Service::RmaEngine, Method::POST, merchant, "v1/returns", body).await
}

/// Asks the shopper to send the same form again, because the withdrawal may have been saved.
fn show_unknown(visit: &Visit, order: &str, sent: &Fields) -> Result<HttpResponse, PageError> {
    let action = url(visit, "/withdraw/confirm", order);
    let template =
        AgainPage { page: Page::new(visit, None), fields: sent.pairs().to_vec(), action };
    html_with(StatusCode::SERVICE_UNAVAILABLE, &template.page, &template)
}

/// Shows the page. Without the data of the first step, the shopper starts there.
async fn show(visit: &Visit, order: &str, shown: Shown<'_>) -> Result<HttpResponse, PageError> {
    check_offered(visit)?;
    let back = url(visit, "/withdraw", order);
    let is_proven = visit.proofs().iter().any(|proof| proof.order == order && !proof.is_gift);
    let Some(person) = visit.shopper.withdrawal.clone().filter(|_| is_proven) else {
        return Ok(redirect(&back));
    };
    let found = order::load(visit, order).await?;
    let page = Page::new(visit, None);
    let chosen = shown.sent.map(|sent| sent.text("method"));
    let paid: Option<i64> =
        found.lines.iter().flat_map(|line| &line.free).map(|unit| unit.paid).sum();
    let template = ConfirmPage {
        paid: paid.map(|cents| page.money(&cents, &found.currency)),
        methods: methods(&page, &found, chosen),
        order: found.identifier,
        lines: lines(found.lines, shown.sent),
        person,
        key: Uuid::new_v4().to_string(),
        message: shown.message.map(|message| page.t(message)),
        action: url(visit, "/withdraw/confirm", order),
        back,
        page,
    };
    html_with(shown.status, &template.page, &template)
}

/// The merchant's methods that every unit can have. One of them is chosen, by default the cheapest.
fn methods(page: &Page, order: &Order, chosen: Option<&str>) -> Vec<MethodChoice> {
    let Portal { methods, currency, .. } = page.portal.as_ref();
    let is_possible = |method: &str| {
        let mut lines = order.lines.iter().filter(|line| !line.free.is_empty());
        lines.all(|line| line.refusal(method).is_none())
    };
    let possible = methods.iter().filter(|offer| is_possible(&offer.method));
    let choice = |offer: &crate::merchant::MethodOffer| {
        let cents = offer.shipping_cost_cents;
        // Orders in another currency are returned without a cost.
        let has_cost = cents > 0 && *currency == order.currency;
        let cost = has_cost.then(|| page.money(&cents, currency));
        MethodChoice {
            cost,
            cost_cents: if has_cost { cents } else { 0 },
            is_chosen: chosen == Some(offer.method.as_str()),
            method: offer.method.clone(),
        }
    };
    let mut choices: Vec<_> = possible.map(choice).collect();
    let is_open = choices.iter().all(|choice| !choice.is_chosen);
    if let Some(cheapest) = choices.iter_mut().filter(|_| is_open).min_by_key(|it| it.cost_cents) {
        cheapest.is_chosen = true;
    }
    choices
}

impl MethodChoice {
    /// The id of the name.
    fn name(&self) -> &'static str {
        match self.method.as_str() {
            "express-returns" => "withdraw-method-express",
            "customer-keep" => "withdraw-method-keep",
            _ => "withdraw-method-mail",
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::order::tests::{order, unit};

    fn page() -> Page {
        let mut page = Page::without_merchant(&TestRequest::get().to_http_request());
        let portal = json!({
            "merchant": "a", "version": 1, "name": "A", "currency": "EUR",
            "methods": [
                { "method": "express-returns", "shipping_cost_cents": 0 },
                { "method": "mail-back", "shipping_cost_cents": 595 },
            ],
        });
        page.portal = serde_json::from_value::<Portal>(portal).unwrap().into();
        page
    }

    fn chosen(choices: &[MethodChoice]) -> Vec<&str> {
        choices.iter().filter(|it| it.is_chosen).map(|it| it.method.as_str()).collect()
    }

    #[test]
    fn the_cheapest_method_is_proposed() {
        let page = page();
        let choices = methods(&page, &order(&[unit("1", 1)]), None);
        assert_eq!(chosen(&choices), ["express-returns"]);
        let costs: Vec<_> = choices.iter().map(|choice| choice.cost.as_deref()).collect();
        assert_eq!(costs, [None, Some("€5.95")]);
        assert_eq!(
            chosen(&methods(&page, &order(&[]), Some("customer-keep"))),
            ["express-returns"]
        );
    }

    #[test]
    fn a_method_must_be_possible_for_every_unit() {
        let mut heavy = unit("2", 1);
        heavy["unavailable_methods"] =
            json!([{ "method": "express-returns", "code": "too_heavy_for_express" }]);
        let choices = methods(&page(), &order(&[unit("1", 1), heavy]), Some("express-returns"));
        assert_eq!((choices.len(), chosen(&choices)), (1, vec!["mail-back"]));
    }
}
