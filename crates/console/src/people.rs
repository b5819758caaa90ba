//! People who may use the console: list, invite, change, disable.
//!
//! Operators manage all people; the admin of a merchant manages the people of that merchant.

mod actions;
mod invite;
mod show;

use actix_web::{get, web};
use askama::Template;
use chrono::{DateTime, Utc};
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use serde::Deserialize;

use crate::{
    Page, PageResult, Section, SignedIn,
    filter::{Condition, Filter},
    html,
    markup::{badge, link, text},
    person::Role,
    record_list::{PAGE, Records},
    table::Table,
};

/// A person as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PersonView {
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) merchant: Option<String>,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) totp: bool,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_signed_in_at: Option<DateTime<Utc>>,
}

impl PersonView {
    /// The URL of the person's page.
    pub(crate) fn url(&self) -> String {
        url_of(&self.email)
    }

    pub(crate) fn tone(&self) -> &'static str {
        match self.state.as_str() {
            "active" => "good",
            "disabled" => "bad",
            _ => "info",
        }
    }
}

/// The URL of a person's page.
fn url_of(email: &str) -> String {
    format!("/{}", path!("people", email))
}

/// A page of the people of one merchant, or of all people.
pub(crate) async fn load_people(
    signed_in: &SignedIn,
    merchant: &str,
    after: &str,
) -> Result<Records<PersonView>, ApiError> {
    let query = [("merchant", merchant), ("after", after), ("limit", PAGE)];
    signed_in.api.get(Service::Auth, "v1/people", &query).await
}

pub(crate) fn people_table(people: &[PersonView], page: &Page) -> Table {
    let merchant = |it: &PersonView| it.merchant.as_ref().map(|merchant| format!(" of {merchant}"));
    Table::of("People", people)
        .head("Person", |it| {
            let email = text(&it.email).classed("muted small wrap-anywhere");
            link(it.url(), &it.name).below_some((it.name != it.email).then_some(email))
        })
        .cell("Role", |it| text(it.role.name()).with(text(merchant(it).unwrap_or_default())))
        .cell("State", |it| badge(it.tone(), &it.state))
        .cell("Authenticator app", |it| text(if it.totp { "yes" } else { "no" }))
        .cell("Last signed in", |it| page.time_or(it.last_signed_in_at, "never"))
        .cell("Invited", |it| page.time(it.created_at))
        .table()
}

const CONDITIONS: &[Condition] = &[Condition::MERCHANT];

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    page: Page,
    filter: Filter,
    table: Table,
    next: Option<String>,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_people)
        .configure(invite::routes)
        .configure(show::routes)
        .configure(actions::routes);
}

/// The entry of the navigation to which these pages belong.
fn section(signed_in: &SignedIn) -> Section {
    if signed_in.person.is_staff() { Section::People } else { Section::Merchants }
}

/// The list to which the pages of people lead back.
fn list_url(signed_in: &SignedIn) -> &'static str {
    if signed_in.person.is_staff() { "/people" } else { "/merchant/people" }
}

#[get("/people")]
async fn list_people(signed_in: SignedIn, query: web::Query<Fields>) -> PageResult {
    let filter = Filter::read(&signed_in, "/people", CONDITIONS, &query);
    let page = signed_in.page(section(&signed_in));
    let Records { records: people, next } =
        load_people(&signed_in, filter.value("merchant"), &filter.after).await?;
    let table = people_table(&people, &page);
    html(&PeoplePage { page, filter, table, next })
}
