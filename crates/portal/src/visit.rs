//! The context of a request: the merchant's portal, the language, and the orders that the shopper has
//! proven to know.

use std::{future::Future, pin::Pin, sync::Arc};

use actix_web::{FromRequest, HttpMessage as _, HttpRequest, HttpResponse, dev::Payload, web};
use chrono::{DateTime, Utc};
use pages::{api::Caller, path, url_path::is_own_path};
use platform::http::ClientIp;
use texts::Language;
use url::form_urlencoded;

use crate::{
    App,
    cookie::{Proof, Shopper},
    error::PageError,
    hosts::OwnHost,
    language::{in_query, of_request},
    merchant::Portal,
};

/// A request for a page of one merchant. Every handler below `/{merchant}` can take it.
#[derive(Clone)]
pub(crate) struct Visit {
    pub(crate) portal: Arc<Portal>,
    pub(crate) language: Language,
    /// The languages that the shopper can choose.
    pub(crate) languages: Vec<Language>,
    pub(crate) shopper: Shopper,
    /// Calls with the portal's token and the proofs that are valid now.
    pub(crate) api: Caller,
    /// The path and query of this page as the browser knows them, without `lang`.
    pub(crate) target: String,
    pub(crate) now: DateTime<Utc>,
    /// Whether the URL names a language, which the cookie should keep.
    pub(crate) has_language_in_url: bool,
    /// The start of every path: empty on the merchant's own host name.
    base: String,
}

impl Visit {
    /// The path of a page of this merchant: `url("/choose")`. The find page is `url("")`.
    pub(crate) fn url(&self, path: &str) -> String {
        let url = format!("{}{path}", self.base);
        if url.starts_with('/') { url } else { format!("/{url}") }
    }

    /// The proofs that are valid now, oldest first.
    pub(crate) fn proofs(&self) -> Vec<&Proof> {
        self.shopper.proofs(self.now)
    }

    /// The identifier of the merchant, for `X-Service-Id`.
    pub(crate) fn merchant(&self) -> &str {
        &self.portal.merchant
    }

    /// Sends the shopper's cookie with a response.
    pub(crate) fn with_cookie(
        &self,
        app: &App,
        mut response: HttpResponse,
    ) -> Result<HttpResponse, PageError> {
        let cookie = self.shopper.cookie(&app.sealer).map_err(|error| {
            tracing::error!(%error, "a cookie cannot be sealed");
            PageError::Internal
        })?;
        response.add_cookie(&cookie).map_err(|error| {
            tracing::error!(%error, "a cookie cannot be sent");
            PageError::Internal
        })?;
        Ok(response)
    }

    /// A page of this merchant's portal. Anything else could lead to another site.
    pub(crate) fn own_path(&self, next: &str) -> Option<String> {
        let base = self.url("");
        let rest = next.strip_prefix(&base)?;
        let is_below = base == "/" || rest.is_empty() || rest.starts_with(['/', '?']);
        (is_below && is_own_path(next)).then(|| next.to_owned())
    }

    async fn of(request: &HttpRequest) -> Result<Self, PageError> {
        let app = request.app_data::<web::Data<App>>().ok_or(PageError::NotFound)?;
        let name = request.match_info().get("merchant").ok_or(PageError::NotFound)?;
        let address = ClientIp::of(request).0;
        let portal = app.portals.find(&app.access, address, name).await?;
        // A host name is not a path.
        let portal = portal.filter(|portal| portal.merchant == name).ok_or(PageError::NotFound)?;
        let now = app.clock.now();
        let mut shopper = Shopper::of(request, &app.sealer).at(name);
        let proofs: Vec<_> = shopper.proofs(now).iter().map(|proof| proof.proof.clone()).collect();
        let mut api = app.access.caller(address).await?;
        if !proofs.is_empty() {
            api = api.with_header("x-shopper-proof", proofs.join(", "));
        }
        let path = format!("/{}", path!(name));
        let is_own_host = request.extensions().get::<OwnHost>().is_some();
        let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
        let target =
            if is_own_host { target.strip_prefix(&path).unwrap_or(target) } else { target };
        let target = without_language(target);
        let languages = Language::offered(&portal.languages(), app.pseudo_languages);
        let in_url = in_query(request, &languages);
        if let Some(language) = in_url {
            shopper.lang = Some(language.code().to_owned());
        }
        Ok(Self {
            language: of_request(request, &languages, shopper.lang.as_deref()),
            languages,
            has_language_in_url: in_url.is_some(),
            shopper,
            api,
            target: if target.starts_with('/') { target } else { format!("/{target}") },
            now,
            base: if is_own_host { String::new() } else { path },
            portal,
        })
    }
}

impl FromRequest for Visit {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let visit = Self::of(&request).await?;
            // Error pages look like the merchant's other pages.
            request.extensions_mut().insert(visit.clone());
            Ok(visit)
        })
    }
}

/// A visit with at least one valid proof. Without one, the shopper is asked to find the order again, and
/// comes back to this page afterwards.
pub(crate) struct Proven(pub(crate) Visit);

impl FromRequest for Proven {
    type Error = PageError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, PageError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let visit = Visit::from_request(request, payload);
        Box::pin(async move {
            let visit = visit.await?;
            if visit.proofs().is_empty() { Err(PageError::ProofExpired) } else { Ok(Self(visit)) }
        })
    }
}

/// A path and query without the parameter `lang`, so that the chosen language counts.
fn without_language(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
    let others = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "lang");
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(others).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_in_the_url_does_not_prevent_the_switch() {
        assert_eq!(without_language("/acme?lang=de"), "/acme");
        assert_eq!(without_language("/acme/choose?lang=de&i=A"), "/acme/choose?i=A");
        assert_eq!(without_language("/acme"), "/acme");
    }
}
