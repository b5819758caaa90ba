//! The choice of a language, which the cookie keeps.

use actix_web::{HttpResponse, get, post, web};
use serde::Deserialize;
use texts::Language;

use crate::{App, error::PageError, page::redirect, sent::Form, visit::Visit};

#[derive(Deserialize)]
struct Choice {
    lang: String,
    #[serde(default)]
    next: String,
}

pub(crate) fn routes(app: &mut web::ServiceConfig) {
    app.service(follow_link).service(send_form);
}

#[get("/{merchant}/language")]
async fn follow_link(
    app: web::Data<App>,
    visit: Visit,
    choice: web::Query<Choice>,
) -> Result<HttpResponse, PageError> {
    keep(&app, visit, &choice)
}

#[post("/{merchant}/language")]
async fn send_form(
    app: web::Data<App>,
    visit: Visit,
    choice: Form<Choice>,
) -> Result<HttpResponse, PageError> {
    let choice = choice.0;
    keep(&app, visit, &choice)
}

/// Keeps the language and leads back to the page.
fn keep(app: &App, mut visit: Visit, choice: &Choice) -> Result<HttpResponse, PageError> {
    if let Some(language) = Language::find(&visit.languages, &choice.lang) {
        visit.shopper.lang = Some(language.code().to_owned());
    }
    let next = visit.own_path(&choice.next).unwrap_or_else(|| visit.url(""));
    visit.with_cookie(app, redirect(&next))
}
