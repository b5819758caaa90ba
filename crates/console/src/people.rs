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
    text::Moment,
};
use serde::Deserialize;
use url::form_urlencoded;

use crate::{Page, PageResult, Section, SignedIn, html, person::Role};

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
    created_at: DateTime<Utc>,
    last_signed_in_at: Option<DateTime<Utc>>,
}

/// A row of a list of people.
pub(crate) struct PersonRow {
    pub(crate) view: PersonView,
    pub(crate) created: Moment,
    pub(crate) last_signed_in: Option<Moment>,
}

impl PersonRow {
    fn new(view: PersonView, page: &Page) -> Self {
        let created = page.moment(view.created_at);
        let last_signed_in = view.last_signed_in_at.map(|at| page.moment(at));
        Self { view, created, last_signed_in }
    }

    /// The URL of the person's page.
    pub(crate) fn url(&self) -> String {
        url_of(&self.view.email)
    }

    pub(crate) fn tone(&self) -> &'static str {
        match self.view.state.as_str() {
            "active" => "good",
            "disabled" => "bad",
            _ => "info",
        }
    }
}

/// The URL of a person's page.
fn url_of(email: &str) -> String {
    format!("/{}", pages::path!("people", email))
}

#[derive(Deserialize)]
pub(crate) struct PersonPage {
    people: Vec<PersonView>,
    next: Option<String>,
}

impl PersonPage {
    /// A page of the people of one merchant, or of all people.
    pub(crate) async fn load(
        signed_in: &SignedIn,
        merchant: &str,
        after: &str,
    ) -> Result<Self, ApiError> {
        let query = [("merchant", merchant), ("after", after), ("limit", "50")];
        signed_in.api.get(Service::Auth, "v1/people", &query).await
    }

    /// The rows, and the query of the next page.
    pub(crate) fn rows(self, page: &Page) -> (Vec<PersonRow>, Option<String>) {
        let rows = self.people.into_iter().map(|view| PersonRow::new(view, page)).collect();
        (rows, self.next)
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PeopleFilter {
    merchant: String,
    after: String,
}

#[derive(Template)]
#[template(path = "people.html")]
struct PeoplePage {
    page: Page,
    filter: PeopleFilter,
    people: Vec<PersonRow>,
    /// The query of the next page.
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
async fn list_people(signed_in: SignedIn, filter: web::Query<PeopleFilter>) -> PageResult {
    let filter = filter.into_inner();
    let page = signed_in.page(section(&signed_in));
    let list = PersonPage::load(&signed_in, filter.merchant.trim(), &filter.after).await?;
    let (people, next) = list.rows(&page);
    let next = next.map(|after| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs([("merchant", filter.merchant.as_str()), ("after", &after)]);
        query.finish()
    });
    html(&PeoplePage { page, filter, people, next })
}
