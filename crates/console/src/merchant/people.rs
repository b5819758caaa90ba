//! The people of a merchant.

use actix_web::{get, web};
use askama::Template;
use futures_util::future::join;

use super::{After, Frame, Merchant, Tab, page_of};
use crate::{
    Page, PageResult, SignedIn, html,
    people::{load_people, people_table},
    record_list::Records,
    table::Table,
};

#[derive(Template)]
#[template(path = "merchant_people.html")]
struct PeoplePage {
    page: Page,
    merchant: Frame,
    table: Table,
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
        join(Merchant::load(&signed_in, id), load_people(&signed_in, id, &query.after)).await;
    let found = found?;
    let page = page_of(&signed_in, &found);
    let Records { records, next } = list?;
    let table = people_table(&records, &page);
    let merchant = Frame::new(&signed_in.person, &found, Tab::People);
    html(&PeoplePage { page, merchant, table, next })
}
