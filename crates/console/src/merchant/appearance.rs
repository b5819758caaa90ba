//! The appearance of a merchant's portal: a form with a preview.

use actix_web::{HttpResponse, get, http::header, post, web};
use askama::Template;
use domain::merchant::Colors;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde_json::Value;

use super::{Frame, Merchant, Tab, appearance_form::AppearanceForm, page, require_manage};
use crate::{
    App,
    error::PageError,
    notice::Notice,
    page::{Page, html, rejected},
    person::{Posted, SignedIn},
};

#[derive(Template)]
#[template(path = "merchant_appearance.html")]
struct AppearancePage {
    page: Page,
    merchant: Frame,
    form: AppearanceForm,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_appearance)
        .service(change_appearance)
        .service(preview_appearance)
        .service(show_preview_style);
}

fn appearance_page(
    app: &App,
    signed_in: &SignedIn,
    merchant: &Merchant,
    form: AppearanceForm,
) -> AppearancePage {
    let frame = Frame::new(&signed_in.person, merchant, Tab::Appearance);
    AppearancePage { page: page(app, signed_in), merchant: frame, form }
}

#[get("/merchants/{merchant}/appearance")]
async fn show_appearance(
    app: web::Data<App>,
    signed_in: SignedIn,
    merchant: web::Path<String>,
) -> Result<HttpResponse, PageError> {
    require_manage(&signed_in)?;
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    let form = AppearanceForm::of(&found.appearance, &found.settings.returns.reasons);
    html(&appearance_page(&app, &signed_in, &found, form))
}

#[post("/merchants/{merchant}/appearance")]
async fn change_appearance(
    app: web::Data<App>,
    posted: Posted<Fields>,
    merchant: web::Path<String>,
) -> Result<HttpResponse, PageError> {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let id = signed_in.merchant(&merchant)?;
    let found = Merchant::load(&signed_in, id).await?;
    let mut form = AppearanceForm::read(&form, &found.settings.returns.reasons);
    let path = path!("v1", "merchants", id);
    let changed: Result<Value, _> =
        signed_in.api.send_json(Service::Auth, Method::PATCH, None, &path, &form.body()).await;
    match changed {
        Ok(_) => {
            let url = format!("/{}", path!("merchants", id, "appearance"));
            return Ok(Notice::AppearanceSaved.redirect(&url));
        }
        Err(ApiError::Invalid(body)) => form.reject(&body),
        Err(ApiError::Conflict(body)) => form.reject_host_names(&body),
        Err(error) => return Err(error.into()),
    }
    rejected(&appearance_page(&app, &signed_in, &found, form))
}

/// Shows the typed values without saving them. Only browsers without JavaScript need it.
#[post("/merchants/{merchant}/appearance/preview")]
async fn preview_appearance(
    app: web::Data<App>,
    posted: Posted<Fields>,
    merchant: web::Path<String>,
) -> Result<HttpResponse, PageError> {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    let mut form = AppearanceForm::read(&form, &found.settings.returns.reasons);
    form.colors.check();
    html(&appearance_page(&app, &signed_in, &found, form))
}

/// The style sheet of the preview. It depends only on the colours in the query, so it needs no session.
#[get("/merchants/{merchant}/appearance/preview.css")]
async fn show_preview_style(colors: web::Query<Colors>) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "public, max-age=3600"))
        .content_type("text/css; charset=utf-8")
        .body(preview_style(&colors))
}

/// The colours have only hexadecimal digits, so that they cannot add rules.
fn preview_style(colors: &Colors) -> String {
    let Colors { primary, text_on_primary, background, text } = colors;
    format!(
        ".preview {{ max-inline-size: 24rem; border: 1px solid {text}; border-radius: 0.5rem; \
           overflow: hidden; color: {text}; background: {background}; }}\n\
         .preview > * {{ margin: 0; padding: 0.75rem 1rem; overflow-wrap: anywhere; }}\n\
         .preview-head, .preview-button {{ color: {text_on_primary}; background: {primary}; \
           font-weight: 600; }}\n\
         .preview-button {{ display: inline-block; padding: 0.5rem 1rem; border-radius: 0.3rem; }}\n\
         [data-color-of] {{ inline-size: 3rem; padding: 0.25rem; }}\n\
         input:has(+ [data-color-of]) {{ flex: 1; inline-size: auto; }}\n"
    )
}

#[cfg(test)]
mod tests {
    use actix_web::{http::StatusCode, test};

    use super::*;

    #[actix_web::test]
    async fn the_style_sheet_of_the_preview_takes_only_colors() {
        let app = actix_web::App::new().service(show_preview_style);
        let app = test::init_service(app).await;
        for (query, status) in [
            ("", StatusCode::OK),
            ("?primary=%230a5&text_on_primary=%23000000", StatusCode::OK),
            ("?primary=red", StatusCode::BAD_REQUEST),
            ("?primary=%23fff%7D*%7Bdisplay:none", StatusCode::BAD_REQUEST),
        ] {
            let url = format!("/merchants/acme/appearance/preview.css{query}");
            let request = test::TestRequest::get().uri(&url).to_request();
            let response = test::call_service(&app, request).await;
            assert_eq!(response.status(), status, "{query}");
        }
        let colors = Colors { primary: "#0a5".parse().unwrap(), ..Colors::default() };
        assert!(preview_style(&colors).contains("background: #00aa55;"));
    }
}
