//! The list of merchants, for staff, and the form for a new one.

mod health;
mod new;

use actix_web::{get, web};
use askama::Template;
use futures_util::future::join;
use pages::{api::Service, form::Fields, text::count};

use self::health::HealthOfAll;
use crate::{
    Page, PageError, PageResult, Section, SignedIn,
    filter::{Condition, Filter},
    html,
    markup::{badge, link, text},
    merchant::Merchant,
    notice::redirect,
    record_list::{PAGE, Records},
    table::Table,
};

/// The number of suggestions.
const OPTIONS: &str = "10";

const CONDITIONS: &[Condition] = &[Condition::text("q", "Name or identifier")];

#[derive(Template)]
#[template(path = "merchants.html")]
struct MerchantsPage {
    page: Page,
    filter: Filter,
    table: Table,
    next: Option<String>,
    unavailable: Vec<Service>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_merchants).service(list_options).configure(new::routes);
}

#[get("/merchants")]
async fn list_merchants(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    if !signed_in.person.is_staff() {
        return Ok(redirect("/merchant"));
    }
    let filter = Filter::read(&signed_in, "/merchants", CONDITIONS, &query);
    let page = signed_in.page(Section::Merchants);
    let request = [("q", filter.value("q")), ("after", filter.after.as_str()), ("limit", PAGE)];
    let (found, health) = join(
        signed_in.api.get::<Records<Merchant>>(Service::Auth, "v1/merchants", &request),
        HealthOfAll::load(&signed_in),
    )
    .await;
    let Records { records: merchants, next } = found?;
    let mut health = health?;
    health.load_not_tried(&signed_in, &merchants).await?;
    let endpoints = |it: &Merchant| count(it.endpoints.len(), "endpoint", "endpoints");
    let url = |it: &Merchant, tab: &str| format!("/merchants/{}{tab}", it.identifier);
    let table = Table::of("Merchants", &merchants)
        .head("Merchant", |it| link(url(it, ""), &it.settings.name))
        .cell("Identifier", |it| text(&it.identifier))
        .cell("Endpoints", |it| link(url(it, "/endpoints"), endpoints(it)))
        .cell("Health", |it| {
            let (tone, health) = health.of(it);
            badge(tone, health)
        })
        .cell("Created", |it| page.time(it.created_at))
        .table();
    let unavailable = health.unavailable;
    html(&MerchantsPage { page, filter, table, next, unavailable })
}

#[derive(Template)]
#[template(path = "merchant_options.html")]
struct OptionsPage {
    merchants: Vec<Merchant>,
}

/// Merchants that begin with a text, as suggestions for a field.
#[get("/merchant-options")]
async fn list_options(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    if !signed_in.person.is_staff() {
        return Err(PageError::NotFound);
    }
    let query = [("q", query.text("q")), ("limit", OPTIONS)];
    let found: Records<Merchant> = signed_in.api.get(Service::Auth, "v1/merchants", &query).await?;
    html(&OptionsPage { merchants: found.records })
}
