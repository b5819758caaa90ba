//! Starts a return for a shopper: one form, which shows a quote and then starts the return on its terms.

mod choices;
mod offer;

use std::collections::BTreeMap;

use actix_web::{get, post, web};
use askama::Template;
use domain::{exchange::OfferedVariant, returns::Rma};
use pages::{
    api::{ApiError, ErrorBody, Service},
    form::{Field, Fields},
    path,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    Notice, Page, PageError, PageResult, Posted, Section, SignedIn, error::sentence,
    form_key::FormKey, html, markup::text, person::Person, record_list::amount, rejected,
    table::Table,
};
use choices::Choices;
use offer::{ProductOffer, Quote, QuotedUnit, Returnable, Unit};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(choose).service(send);
}

/// An entry of a selection.
struct Choice {
    value: String,
    label: String,
    is_chosen: bool,
}

impl Choice {
    fn new(value: &str, label: impl Into<String>, chosen: &str) -> Self {
        Self { value: value.to_owned(), label: label.into(), is_chosen: value == chosen }
    }
}

/// A check box for a unit.
struct UnitChoice {
    /// The identifier of the unit as JSON.
    value: String,
    title: String,
    about: String,
    /// The reason why the unit cannot be returned, unless the policy is overridden.
    problem: Option<String>,
    /// Whether no staff member can override the reason.
    is_fact: bool,
    is_chosen: bool,
}

impl UnitChoice {
    fn new(unit: &Unit, currency: &str, choices: &Choices) -> Self {
        let cents = unit.refund_amount_cents.map(|cents| amount(cents, Some(currency)));
        let line = &unit.id.order_line_item_identifier;
        Self {
            value: json!(unit.id).to_string(),
            title: unit.title.clone(),
            about: format!(
                "{}, line {line}, unit {}{}",
                unit.sku,
                unit.id.unit,
                cents.map(|cents| format!(", {cents}")).unwrap_or_default()
            ),
            problem: unit.ineligible.as_ref().map(|it| sentence(&it.in_words())),
            is_fact: unit.ineligible.as_ref().is_some_and(|it| !it.code.is_overridable()),
            is_chosen: choices.units.contains(&unit.id),
        }
    }
}

/// The variants of a product.
struct VariantChoice {
    /// The name of the field.
    name: String,
    title: String,
    variants: Vec<Choice>,
    /// The reason why there is none.
    missing: Option<String>,
}

impl VariantChoice {
    fn new(offer: &ProductOffer, currency: &str, choices: &Choices) -> Self {
        let chosen = choices.variants.get(&offer.product).map_or("", String::as_str);
        let variant = |it: &OfferedVariant| {
            let price = it.unit_price_amount_cents.map(|cents| amount(cents, Some(currency)));
            let price = price.map(|price| format!(", {price}")).unwrap_or_default();
            Choice::new(&it.sku, format!("{} ({}){price}", it.title, it.sku), chosen)
        };
        Self {
            name: choices::variant_field(&offer.product),
            title: offer.title.clone(),
            variants: offer.variants.iter().map(variant).collect(),
            missing: offer.missing.clone(),
        }
    }
}

/// A quote as the page shows it.
struct QuoteView {
    token: String,
    possible: bool,
    /// Names and amounts.
    amounts: Vec<(&'static str, String)>,
    review_rule: Option<String>,
    units: Table,
}

impl From<Quote> for QuoteView {
    fn from(quote: Quote) -> Self {
        let money = |cents: i64| amount(cents, Some(&quote.currency));
        let mut amounts = vec![
            ("Refund to the shopper", money(quote.shopper_refund_amount_cents)),
            ("Return shipping", money(quote.return_shipping_cost_cents)),
        ];
        if quote.gift_card_bonus_amount_cents > 0 {
            amounts.push(("Bonus for gift cards", money(quote.gift_card_bonus_amount_cents)));
        }
        let units = Table::of("Units of the quote", &quote.units)
            .head("Unit", |it| text(&it.title).and(text(it.id.unit).classed("muted")))
            .classed("number nowrap", "Refund", |it: &QuotedUnit| {
                text(money(it.refund_financials.shopper_refund_amount_cents))
            })
            .cell("Can be returned", |it| match (&it.ineligible, it.overridden) {
                (Some(reason), _) => text(sentence(&reason.in_words())),
                (None, Some(_)) => text("yes, against the policy"),
                (None, None) => text("yes"),
            })
            .table();
        Self {
            token: quote.quote,
            possible: quote.possible,
            amounts,
            review_rule: quote.review_rule,
            units,
        }
    }
}

#[derive(Template)]
#[template(path = "order_return.html")]
struct StartPage {
    page: Page,
    merchant: String,
    order: String,
    key: FormKey,
    units: Vec<UnitChoice>,
    /// Whether the order has more units than the form.
    is_truncated: bool,
    reasons: Vec<Choice>,
    resolutions: Vec<Choice>,
    methods: Vec<Choice>,
    products: Vec<VariantChoice>,
    is_overridden: bool,
    note: Field,
    units_error: Option<&'static str>,
    /// The reason why there is no quote or no return.
    problem: Option<String>,
    quote: Option<QuoteView>,
}

impl StartPage {
    fn new(
        page: Page,
        (merchant, order): (String, String),
        returnable: &Returnable,
        offers: &[ProductOffer],
        choices: &Choices,
    ) -> Self {
        let currency = &returnable.currency;
        let unit = |it| UnitChoice::new(it, currency, choices);
        let cost =
            |cents: i64| if cents > 0 { amount(cents, Some(currency)) } else { "free".into() };
        let resolutions = returnable.resolutions().into_iter();
        Self {
            page,
            merchant,
            order,
            key: FormKey::random(),
            units: returnable.units.iter().map(unit).collect(),
            is_truncated: returnable.next.is_some(),
            reasons: returnable
                .reasons
                .iter()
                .map(|it| Choice::new(&it.code, it.label.as_str(), &choices.reason))
                .collect(),
            resolutions: resolutions
                .map(|(value, label)| Choice::new(value, label, &choices.resolution))
                .collect(),
            methods: returnable
                .methods
                .iter()
                .map(|it| {
                    let label = format!("{} ({})", it.method, cost(it.shipping_cost_cents));
                    Choice::new(it.method.as_str(), label, &choices.method)
                })
                .collect(),
            products: offers.iter().map(|it| VariantChoice::new(it, currency, choices)).collect(),
            is_overridden: choices.is_overridden,
            note: Field::new(choices.note.as_str()),
            units_error: None,
            problem: None,
            quote: None,
        }
    }

    /// Checks the choices that the form needs before a request. Returns whether they are complete.
    fn check(&mut self, choices: &Choices, offers: &[ProductOffer]) -> bool {
        if choices.units.is_empty() {
            self.units_error = Some("Choose at least one unit.");
        }
        if choices.is_overridden && choices.note.is_empty() {
            self.note.reject("Say why the policy does not apply.");
        }
        if self.units_error.is_none() && offers.iter().any(|it| choices.variant(it).is_none()) {
            self.problem =
                Some("Choose a variant of each product, then ask for a quote.".to_owned());
        }
        self.units_error.is_none() && self.note.is_valid() && self.problem.is_none()
    }

    /// Shows the reason why the service refused the request.
    fn refuse(mut self, error: ApiError) -> PageResult {
        match error {
            ApiError::Conflict(body) => {
                self.problem = Some(sentence(&body.message));
                let quote = body.rest.get("quote").cloned().map(serde_json::from_value::<Quote>);
                self.quote = quote.and_then(Result::ok).map(QuoteView::from);
            }
            ApiError::Invalid(body) => self.problem = Some(explained(&body)),
            error => return Err(error.into()),
        }
        rejected(&self)
    }
}

/// The first error of a field says more than the summary.
fn explained(body: &ErrorBody) -> String {
    let first = body.errors.first().and_then(|error| body.field(&error.field));
    sentence(&first.unwrap_or_else(|| body.message.clone()))
}

#[get("/merchants/{merchant}/orders/{order}/return")]
async fn choose(signed_in: SignedIn, path: web::Path<(String, String)>) -> PageResult {
    let path = path.into_inner();
    check_role(&signed_in.person)?;
    let returnable = Returnable::load(&signed_in, signed_in.merchant(&path.0)?, &path.1).await?;
    let choices = Choices::default();
    let page = signed_in.page(Section::Orders);
    html(&StartPage::new(page, path, &returnable, &[], &choices))
}

#[post("/merchants/{merchant}/orders/{order}/return")]
async fn send(posted: Posted<Fields>, path: web::Path<(String, String)>) -> PageResult {
    let Posted { signed_in, form } = posted;
    let path = path.into_inner();
    check_role(&signed_in.person)?;
    let merchant = signed_in.merchant(&path.0)?.to_owned();
    let returnable = Returnable::load(&signed_in, &merchant, &path.1).await?;
    let choices = Choices::read(&form);
    let offers = if choices.is_exchange() {
        returnable.offers(&signed_in, &merchant, &choices.units).await
    } else {
        Vec::new()
    };
    let page = signed_in.page(Section::Orders);
    let mut shown = StartPage::new(page, path, &returnable, &offers, &choices);
    if !shown.check(&choices, &offers) {
        return rejected(&shown);
    }
    let body = choices.body(&signed_in.person.email, &offers);
    if form.text("step") == "start" {
        return start(&signed_in, &merchant, shown, body, &form).await;
    }
    let quote: Result<Quote, _> = signed_in
        .api
        .send_json(Service::RmaEngine, Method::POST, Some(&merchant), "v1/returns/quote", &body)
        .await;
    match quote {
        Ok(quote) => {
            shown.quote = Some(quote.into());
            html(&shown)
        }
        Err(error) => shown.refuse(error),
    }
}

/// Starts the return on the terms of the quote. A form that is sent twice starts one return.
async fn start(
    signed_in: &SignedIn,
    merchant: &str,
    shown: StartPage,
    mut body: BTreeMap<&'static str, Value>,
    form: &Fields,
) -> PageResult {
    body.insert("quote", form.text("quote").into());
    let api = FormKey::read(form)?.api(&signed_in.api);
    let started: Result<Rma, _> =
        api.send_json(Service::RmaEngine, Method::POST, Some(merchant), "v1/returns", &body).await;
    match started {
        Ok(rma) => {
            let url = path!("merchants", merchant, "returns", rma.rma_identifier);
            let notice =
                if rma.is_in_review() { Notice::ReturnRequested } else { Notice::ReturnStarted };
            Ok(notice.redirect(&format!("/{url}")))
        }
        Err(error) => shown.refuse(error),
    }
}

fn check_role(person: &Person) -> Result<(), PageError> {
    if person.may_manage() {
        Ok(())
    } else {
        Err(PageError::Denied("your role cannot start returns".to_owned()))
    }
}

#[cfg(test)]
mod tests;
