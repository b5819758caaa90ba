//! Sets an endpoint.

use actix_web::{get, http::StatusCode, post, web};
use askama::Template;
use chrono::{DateTime, Utc};
use domain::merchant::Interface;
use pages::{
    api::{ApiError, Service},
    form::Fields,
    path,
};
use reqwest::Method;
use serde::Deserialize;

use super::{
    Frame, Merchant, Tab,
    endpoint_form::EndpointForm,
    endpoints::{interface_of, title},
    page, require_manage,
    version::{Version, is_outdated},
};
use crate::{
    Notice, Page, PageError, PageResult, Posted, SignedIn,
    changes::{self, Change},
    confirm::SecretPage,
    error::sentence,
    form_key::{FormKey, SENT_BEFORE},
    html, html_with, rejected,
};

/// The merchant and the interface in a URL.
pub(super) type EndpointPath = web::Path<(String, String)>;

#[derive(Template)]
#[template(path = "merchant_endpoint.html")]
struct EndpointPage {
    page: Page,
    merchant: Frame,
    interface: Interface,
    title: &'static str,
    /// Whether the endpoint exists.
    is_set: bool,
    /// Whether the stored URL has a query, which is not shown.
    has_query: bool,
    base_url: Option<String>,
    /// The end of the stored client certificate.
    certificate_expires_at: Option<DateTime<Utc>>,
    form: EndpointForm,
    key: FormKey,
    version: Version,
    /// The values that differ, if another person changed the merchant in the meantime.
    changes: Vec<Change>,
}

pub(super) fn routes(app: &mut web::ServiceConfig) {
    app.service(show_endpoint).service(set_endpoint);
}

/// The page; `form` is a rejected form, if there is one.
async fn load(
    signed_in: &SignedIn,
    (merchant, interface): (&str, Interface),
    form: Option<EndpointForm>,
) -> Result<EndpointPage, PageError> {
    let found = Merchant::load(signed_in, merchant).await?;
    let endpoint = found.endpoints.get(interface.name());
    let url = endpoint.and_then(|endpoint| endpoint.url.as_deref());
    Ok(EndpointPage {
        page: page(signed_in),
        merchant: Frame::new(&signed_in.person, &found, Tab::Endpoints),
        interface,
        title: title(interface),
        is_set: endpoint.is_some(),
        has_query: url.is_some_and(|url| url.contains('?')),
        base_url: found.settings.base_url.clone(),
        certificate_expires_at: endpoint.and_then(|endpoint| endpoint.certificate_expires_at),
        key: FormKey::random(),
        version: Version::of(&found),
        changes: Vec::new(),
        form: form.unwrap_or_else(|| EndpointForm::of(found.endpoint_json(interface.name()))),
    })
}

#[get("/merchants/{merchant}/endpoints/{interface}")]
async fn show_endpoint(signed_in: SignedIn, path: EndpointPath) -> PageResult {
    let interface = interface_of(&path.1)?;
    let merchant = signed_in.merchant(&path.0)?;
    require_manage(&signed_in)?;
    html(&load(&signed_in, (merchant, interface), None).await?)
}

#[derive(Deserialize)]
struct SetEndpoint {
    signing_secret: Option<String>,
}

#[post("/merchants/{merchant}/endpoints/{interface}")]
async fn set_endpoint(posted: Posted<Fields>, path: EndpointPath) -> PageResult {
    let Posted { signed_in, form } = posted;
    let interface = interface_of(&path.1)?;
    let merchant = signed_in.merchant(&path.0)?;
    let version = Version::read(&form);
    let key = FormKey::read(&form)?;
    let mut form = EndpointForm::read(&form);
    let body = form.body();
    let url = path!("v1", "merchants", merchant, "endpoints", interface.name());
    // A stored query is not shown, so the form cannot send it.
    let url = format!("{url}?keep_queries={}", form.keeps_query);
    let api = key.api(&version.api(&signed_in));
    let set: Result<SetEndpoint, _> =
        api.send_json(Service::Auth, Method::PUT, None, &url, &body).await;
    match set {
        Ok(set) => return saved(&signed_in, (merchant, interface), set),
        Err(error) if is_outdated(&error) => {
            return outdated(&signed_in, (merchant, interface), form).await;
        }
        Err(ApiError::Invalid(body)) if body.field("$").is_some() => {
            form.inputs.message = Some(SENT_BEFORE.to_owned());
        }
        Err(ApiError::Invalid(body)) => form.inputs.reject_all(&body),
        Err(ApiError::Conflict(body)) => form.inputs.reject("url", sentence(&body.message)),
        Err(error) => return Err(error.into()),
    }
    form.hide_headers();
    let shown = load(&signed_in, (merchant, interface), Some(form)).await?;
    rejected(&EndpointPage { version, ..shown })
}

/// Shows the values that are stored now beside those of the form. Saving again replaces them.
async fn outdated(
    signed_in: &SignedIn,
    target: (&str, Interface),
    mut form: EndpointForm,
) -> PageResult {
    let stored = load(signed_in, target, None).await?;
    let changes = changes::between(stored.form.facts(), form.facts());
    form.inputs.message = Some(changes::message("merchant"));
    form.hide_headers();
    html_with(StatusCode::CONFLICT, &EndpointPage { form, changes, ..stored })
}

/// A new endpoint has a new signing secret, which is shown once.
fn saved(
    signed_in: &SignedIn,
    (merchant, interface): (&str, Interface),
    set: SetEndpoint,
) -> PageResult {
    let list = format!("/{}", path!("merchants", merchant, "endpoints"));
    match set.signing_secret {
        Some(secret) => show_signing_secret(signed_in, interface, secret, list),
        None => Ok(Notice::EndpointSet.redirect(&list)),
    }
}

/// Shows a new signing secret once.
pub(super) fn show_signing_secret(
    signed_in: &SignedIn,
    interface: Interface,
    secret: String,
    list: String,
) -> PageResult {
    html(&SecretPage {
        page: page(signed_in),
        title: format!("Signing secret for {}", title(interface)),
        text:
            "Store this secret where your endpoint can read it. It is shown only now. Verify the \
               signature of every message with it."
                .to_owned(),
        values: vec![("Signing secret", secret)],
        signs_messages: true,
        next: (list, "I have stored it"),
    })
}

#[cfg(test)]
mod tests {
    use actix_web::{HttpRequest, HttpResponse};
    use serde_json::json;

    use super::*;
    use crate::fixtures::{app_with_services, key_of, post};

    const KEY: &str = "7d9f5a35-6f4e-4c3b-9a55-2f3f0f5b9c11";
    const PATH: &str = "/merchants/acme/endpoints/exchange-order";

    /// An auth whose signing secret is the idempotency key.
    fn auth(app: &mut web::ServiceConfig) {
        let respond = async |request: HttpRequest| {
            HttpResponse::Ok().json(json!({ "signing_secret": key_of(&request) }))
        };
        app.route("/v1/merchants/acme/endpoints/exchange-order", web::put().to(respond));
    }

    /// An auth that has set an endpoint with this key and other values.
    fn auth_with_used_key(app: &mut web::ServiceConfig) {
        let respond = async || {
            let error = json!({ "field": "$", "code": "invalid", "detail": "was used" });
            let body = json!({ "message": "the request is invalid", "errors": [error] });
            HttpResponse::UnprocessableEntity().json(body)
        };
        app.route("/v1/merchants/acme/endpoints/exchange-order", web::put().to(respond));
    }

    #[actix_web::test]
    async fn a_form_that_creates_an_endpoint_is_one_request() {
        let fields = [("key", KEY), ("version", "2"), ("url", "https://acme.example/orders")];
        let (status, _, page) = post(app_with_services(auth), routes, PATH, &fields).await;
        assert!(status == StatusCode::OK && page.contains(KEY), "{page}");
        let app = app_with_services(auth_with_used_key);
        let (status, _, page) = post(app, routes, PATH, &fields).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{page}");
        assert!(page.contains("sent before, with other values"), "{page}");
        assert!(page.contains(r#"name="key""#) && !page.contains(KEY), "{page}");
        let (status, ..) = post(app_with_services(auth), routes, PATH, &fields[1..]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
}
