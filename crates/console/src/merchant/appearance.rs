//! The appearance of a merchant's portal: a form with a preview.

use actix_web::{
    HttpResponse, get,
    http::{StatusCode, header},
    post, web,
};
use askama::Template;
use domain::merchant::Colors;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde_json::Value;

use super::{
    Frame, Merchant, Tab,
    appearance_form::AppearanceForm,
    page_of, require_manage,
    version::{Version, is_outdated},
};
use crate::{
    Notice, Page, PageResult, Posted, SignedIn,
    changes::{self, Change},
    html, html_with, rejected,
};

#[derive(Template)]
#[template(path = "merchant_appearance.html")]
struct AppearancePage {
    page: Page,
    merchant: Frame,
    form: AppearanceForm,
    version: Version,
    /// The values that differ, if another person changed the merchant in the meantime.
    changes: Vec<Change>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_appearance)
        .service(change_appearance)
        .service(preview_appearance)
        .service(show_preview_style);
}

fn appearance_page(
    signed_in: &SignedIn,
    merchant: &Merchant,
    form: AppearanceForm,
) -> AppearancePage {
    let frame = Frame::new(&signed_in.person, merchant, Tab::Appearance);
    AppearancePage {
        page: page_of(signed_in, merchant),
        merchant: frame,
        form,
        version: Version::of(merchant),
        changes: Vec::new(),
    }
}

#[get("/merchants/{merchant}/appearance")]
async fn show_appearance(signed_in: SignedIn, merchant: web::Path<String>) -> PageResult {
    require_manage(&signed_in)?;
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    let form = AppearanceForm::of(&found.appearance, &found.settings.returns.reasons);
    html(&appearance_page(&signed_in, &found, form))
}

#[post("/merchants/{merchant}/appearance")]
async fn change_appearance(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let id = signed_in.merchant(&merchant)?;
    let found = Merchant::load(&signed_in, id).await?;
    let version = Version::read(&form);
    let mut form = AppearanceForm::read(&form, &found.settings.returns.reasons);
    let api = version.api(&signed_in);
    let path = path!("v1", "merchants", id);
    let changed: Result<Value, _> =
        api.send_json(Service::Auth, Method::PATCH, None, &path, &form.body()).await;
    match changed {
        Ok(_) => {
            let url = format!("/{}", path!("merchants", id, "appearance"));
            return Ok(Notice::AppearanceSaved.redirect(&url));
        }
        Err(error) if is_outdated(&error) => return outdated(&signed_in, id, form).await,
        Err(ApiError::Invalid(body)) => form.reject(&body),
        Err(ApiError::Conflict(body)) => form.reject_host_names(&body),
        Err(error) => return Err(error.into()),
    }
    let shown = appearance_page(&signed_in, &found, form);
    rejected(&AppearancePage { version, ..shown })
}

/// Shows the values that are stored now beside those of the form. Saving again replaces them.
async fn outdated(signed_in: &SignedIn, id: &str, mut form: AppearanceForm) -> PageResult {
    let found = Merchant::load(signed_in, id).await?;
    let stored = AppearanceForm::of(&found.appearance, &found.settings.returns.reasons);
    let changes = changes::between(stored.facts(), form.facts());
    form.inputs.message = Some(changes::message("merchant"));
    let shown = appearance_page(signed_in, &found, form);
    html_with(StatusCode::CONFLICT, &AppearancePage { changes, ..shown })
}

/// Shows the typed values without saving them. Only browsers without JavaScript need it.
#[post("/merchants/{merchant}/appearance/preview")]
async fn preview_appearance(posted: Posted<Fields>, merchant: web::Path<String>) -> PageResult {
    let Posted { signed_in, form } = posted;
    require_manage(&signed_in)?;
    let found = Merchant::load(&signed_in, signed_in.merchant(&merchant)?).await?;
    let version = Version::read(&form);
    let mut form = AppearanceForm::read(&form, &found.settings.returns.reasons);
    form.colors.check();
    let shown = appearance_page(&signed_in, &found, form);
    html(&AppearancePage { version, ..shown })
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
    use actix_web::{cookie::Cookie, test};

    use super::*;
    use crate::fixtures::app_with_changed_merchant;

    #[actix_web::test]
    async fn a_form_that_another_person_overtook_saves_nothing_and_shows_both_values() {
        let app = actix_web::App::new().app_data(web::Data::new(app_with_changed_merchant()));
        let app = test::init_service(app.configure(routes)).await;
        for (version, status) in [("1", StatusCode::CONFLICT), ("2", StatusCode::SEE_OTHER)] {
            let request = test::TestRequest::post()
                .uri("/merchants/acme/appearance")
                .cookie(Cookie::new("__Host-session", "s"))
                .set_form([("version", version), ("contact_email", "help@acme.example")]);
            let response = test::call_service(&app, request.to_request()).await;
            assert_eq!(response.status(), status, "version {version}");
            let page = test::read_body(response).await;
            let page = String::from_utf8_lossy(&page);
            if status == StatusCode::CONFLICT {
                for part in ["Nothing was saved", "Stored now", "Brand one", "<title>Error: "] {
                    assert!(page.contains(part), "{part} in {page}");
                }
                assert!(page.contains(r#"name="version" value="2""#), "{page}");
                assert!(page.contains("Europe/Berlin"), "{page}");
            }
        }
    }

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
