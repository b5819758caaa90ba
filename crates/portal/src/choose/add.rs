//! The form that adds an order to the return.

use actix_web::{HttpResponse, get, http::StatusCode, post, web};
use platform::http::Sequential;

use super::load;
use crate::{
    App,
    error::PageError,
    find::{
        Failed,
        form::{FindForm, SentForm},
        look_up,
    },
    page::{Page, redirect},
    sent::{Form, Sent},
    visit::{Proven, Visit},
};

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_added).service(add_order);
}

/// A reload, or a shopper who had to find the first order again.
#[get("/{merchant}/choose/add")]
async fn show_added(visit: Visit) -> HttpResponse {
    redirect(&format!("{}?{}", visit.url("/choose"), query(&visit)))
}

/// Adds an order that the shopper proves to know. A failure shows the page again with its choices, and the
/// reason beside the field.
#[post("/{merchant}/choose/add")]
async fn add_order(
    app: web::Data<App>,
    Sequential(Proven(mut visit), sent): Sequential<Proven, Form<SentForm>>,
) -> Result<HttpResponse, PageError> {
    let sent = sent.0;
    visit.target = visit.own_path(&sent.next).unwrap_or_else(|| visit.url("/choose"));
    let mut form = FindForm::check(&Page::new(&visit, None), sent);
    let failed = match form.lookup() {
        None => Failed::without_lookup(StatusCode::UNPROCESSABLE_ENTITY),
        Some(body) => match look_up(&visit, &body).await {
            Ok(found) => {
                let next = visit.target.clone();
                return found.open(&app, visit, &next);
            }
            Err(error) => Failed::new(&visit, error, "find-wrong")?,
        },
    };
    if let Some(message) = &failed.message {
        form.order.reject(message);
    }
    let mut page = load(&visit, &Sent::parse(query(&visit)).unwrap_or_default()).await?;
    page.problems = form.problems();
    page.find = form;
    failed.response(&page.page, &page)
}

/// The choices in the URL of the page.
fn query(visit: &Visit) -> &str {
    visit.target.split_once('?').map_or("", |(_, query)| query)
}
