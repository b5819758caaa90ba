//! The people of a merchant.

use actix_web::{get, web};
use askama::Template;
use futures_util::future::join;

use super::{After, Frame, Merchant, Tab, page_of};
use crate::{
    Page, PageResult, SignedIn, html,
    people::{PersonPage, PersonRow},
};

#[derive(Template)]
#[template(path = "merchant_people.html")]
struct PeoplePage {
    page: Page,
    merchant: Frame,
    people: Vec<PersonRow>,
    next: Option<String>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(list_people);
}

#[get("/merchants/{merchant}/people")]
async fn list_people(
    signed_in: SignedIn,
    merchant: web::Path<String>,
    query: web::Query<After>,
) -> PageResult {
    let id = signed_in.merchant(&merchant)?;
    let (found, list) =
        join(Merchant::load(&signed_in, id), PersonPage::load(&signed_in, id, &query.after)).await;
    let found = found?;
    let page = page_of(&signed_in, &found);
    let (people, next) = list?.rows(&page);
    let merchant = Frame::new(&signed_in.person, &found, Tab::People);
    html(&PeoplePage { page, merchant, people, next })
}
