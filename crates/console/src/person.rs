//! The signed-in person of a request.

use std::{future::Future, pin::Pin};

use actix_web::{FromRequest, HttpMessage as _, HttpRequest, dev::Payload, web};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use pages::{
    api::{ApiError, Caller, Service},
    form::FormError,
    path,
};
use platform::http::{ClientIp, read_body};
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::json;
use url::form_urlencoded;

use crate::{App, Notice, PageError, cookies::session_of, sent_form};

/// The role decides which actions a person may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    Operator,
    Support,
    MerchantAdmin,
    MerchantViewer,
}

impl Role {
    /// The role in requests to auth.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Support => "support",
            Self::MerchantAdmin => "merchant-admin",
            Self::MerchantViewer => "merchant-viewer",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Support => "support",
            Self::MerchantAdmin => "merchant admin",
            Self::MerchantViewer => "merchant viewer",
        }
    }
}

/// A person as auth describes it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Person {
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) merchant: Option<String>,
    /// Whether the person can sign in with a password. People of the identity provider have none.
    #[serde(default)]
    pub(crate) has_password: bool,
    #[serde(default)]
    pub(crate) totp: bool,
}

impl Person {
    pub(crate) fn is_operator(&self) -> bool {
        self.role == Role::Operator
    }

    /// Whether the person works with all merchants.
    pub(crate) fn is_staff(&self) -> bool {
        matches!(self.role, Role::Operator | Role::Support)
    }

    pub(crate) fn may_replay(&self) -> bool {
        self.role != Role::MerchantViewer
    }

    pub(crate) fn may_manage(&self) -> bool {
        matches!(self.role, Role::Operator | Role::MerchantAdmin)
    }
}

/// The signed-in person, with calls on their behalf.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    pub(crate) person: Person,
    pub(crate) api: Caller,
    /// The zone of the merchant that the page is about; UTC if it is about several.
    pub(crate) zone: Tz,
    /// The result of the form that led to this page.
    pub(crate) notice: Option<Notice>,
    /// The time of the request.
    pub(crate) now: DateTime<Utc>,
}

impl SignedIn {
    /// The merchant of a page: the person's own, or the requested one for staff.
    ///
    /// A merchant's person that names another merchant gets the page for paths that do not exist.
    pub(crate) fn merchant<'a>(&'a self, requested: &'a str) -> Result<&'a str, PageError> {
        match &self.person.merchant {
            Some(own) if own != requested => Err(PageError::NotFound),
            _ => Ok(requested),
        }
    }
}

#[derive(Deserialize)]
struct SessionToken {
    access_token: String,
    person: Person,
}

impl FromRequest for SignedIn {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { sign_in(&request).await })
    }
}

/// A form that a signed-in person sent. If the session ended, the response keeps the fields.
pub(crate) struct Posted<T> {
    pub(crate) signed_in: SignedIn,
    pub(crate) form: T,
}

impl<T: DeserializeOwned + 'static> FromRequest for Posted<T> {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let payload = payload.take();
        Box::pin(async move {
            let signed_in = sign_in(&request).await;
            let body = read_body(&request, payload).await.map_err(FormError::from)?;
            let signed_in = signed_in
                .map_err(|error| sent_form::not_identified(&request, body.clone(), error))?;
            sent_form::store(&request, body.clone());
            let form = serde_html_form::from_bytes(&body).map_err(FormError::from)?;
            Ok(Self { signed_in, form })
        })
    }
}

/// A form that has only a button.
#[derive(Deserialize)]
pub(crate) struct NoFields {}

/// Exchanges the session for a token, so that ending a session has an effect at once.
async fn sign_in(request: &HttpRequest) -> Result<SignedIn, PageError> {
    let app = request.app_data::<web::Data<App>>().ok_or(PageError::NotFound)?;
    let ended = || PageError::SignedOut { next: next(request) };
    let session = session_of(request).ok_or_else(ended)?;
    let address = ClientIp::of(request).0;
    let anonymous = app.api.caller(address, None);
    let body = json!({ "session": session });
    let token: SessionToken = anonymous
        .send_json(Service::Auth, Method::POST, None, "v1/sessions/token", &body)
        .await
        .map_err(|error| match error {
            ApiError::Unauthenticated { .. } => ended(),
            error => error.into(),
        })?;
    let api = app.api.caller(address, Some(token.access_token));
    let zone = zone(request, &token.person, &api).await;
    let notice = Notice::of(request);
    let signed_in = SignedIn { person: token.person, api, zone, notice, now: app.clock.now() };
    // The page about a failure shows the menu of the person.
    request.extensions_mut().insert(signed_in.clone());
    Ok(signed_in)
}

#[derive(Deserialize)]
struct MerchantZone {
    time_zone: String,
}

/// The zone of the merchant that a page is about. Without a response, times are in UTC, and the page says so.
async fn zone(request: &HttpRequest, person: &Person, api: &Caller) -> Tz {
    let Some(merchant) = merchant_of(request, person) else { return Tz::UTC };
    let path = path!("v1", "merchants", merchant);
    let merchant: Result<MerchantZone, _> = api.get(Service::Auth, &path, &[]).await;
    merchant.ok().and_then(|merchant| merchant.time_zone.parse().ok()).unwrap_or(Tz::UTC)
}

/// The merchant that a page is about: the person's own, that of the path, or that of a filter.
fn merchant_of(request: &HttpRequest, person: &Person) -> Option<String> {
    let of_filter = || {
        let mut fields = form_urlencoded::parse(request.query_string().as_bytes());
        fields.find_map(|(name, value)| (name == "merchant").then(|| value.trim().to_owned()))
    };
    let of_path = request.match_info().get("merchant").map(str::to_owned);
    let merchant = person.merchant.clone().or(of_path).or_else(of_filter);
    merchant.filter(|merchant| !merchant.is_empty())
}

/// The page to return to after signing in. A form that was sent cannot be repeated.
fn next(request: &HttpRequest) -> String {
    match request.method().as_str() {
        "GET" => request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        _ => "/".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::fixtures;

    #[test]
    fn a_page_has_the_zone_of_the_merchant_that_it_is_about() {
        let staff = fixtures::signed_in("support", None, &json!({})).person;
        let own = fixtures::signed_in("merchant-admin", Some("acme"), &json!({})).person;
        let request = |uri: &str| TestRequest::with_uri(uri);
        let list = request("/deliveries").to_http_request();
        let filtered = request("/deliveries?state=dead&merchant=+rival").to_http_request();
        let cleared = request("/deliveries?merchant=").to_http_request();
        let page = request("/merchants/rival").param("merchant", "rival").to_http_request();
        assert_eq!(merchant_of(&list, &staff), None);
        assert_eq!(merchant_of(&cleared, &staff), None);
        assert_eq!(merchant_of(&filtered, &staff).as_deref(), Some("rival"));
        assert_eq!(merchant_of(&page, &staff).as_deref(), Some("rival"));
        for request in [&list, &filtered, &page] {
            assert_eq!(merchant_of(request, &own).as_deref(), Some("acme"));
        }
    }
}
