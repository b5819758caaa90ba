//! A merchant's endpoint as a message finds it: where to, signed with what, known by which name.
//!
//! Everything that stays the same between two messages is prepared here once, so an endpoint
//! that was built is an endpoint that can be dialled. Secrets are never shown.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::outcome::TokenRefresh;
use crate::signing::Secret;
use crate::tokens::ClientCredentials;

/// How a merchant wants to know us.
#[derive(Clone, Debug)]
pub enum Authentication {
    None,
    Basic { user: String, password: SecretString },
    Bearer(SecretString),
    ApiKey { header: String, key: SecretString },
    ClientCredentials(Arc<ClientCredentials>),
}

/// An endpoint that is ready to be dialled.
#[derive(Clone, Debug)]
pub struct Endpoint {
    url: Url,
    secrets: Vec<Secret>,
    /// The merchant's own headers and any authentication that does not expire.
    headers: HeaderMap,
    credentials: Option<Arc<ClientCredentials>>,
}

impl Endpoint {
    pub fn new(
        url: Url,
        secrets: Vec<Secret>,
        authentication: &Authentication,
        own_headers: &[(String, String)],
    ) -> Result<Self, BadEndpoint> {
        let mut headers = HeaderMap::with_capacity(own_headers.len() + 1);
        for (name, value) in own_headers {
            let (name, value) = own_header(name, value)?;
            headers.append(name, value);
        }
        let mut credentials = None;
        match authentication {
            Authentication::None => {}
            Authentication::Basic { user, password } => {
                let pair = format!("{user}:{}", password.expose_secret());
                let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
                headers.insert(header::AUTHORIZATION, sensitive(&value)?);
            }
            Authentication::Bearer(token) => {
                let value = format!("Bearer {}", token.expose_secret());
                headers.insert(header::AUTHORIZATION, sensitive(&value)?);
            }
            Authentication::ApiKey { header, key } => {
                let name = header_name(header)?;
                if name != header::AUTHORIZATION && is_reserved(&name) {
                    return Err(BadEndpoint::Reserved(header.clone()));
                }
                headers.insert(name, sensitive(key.expose_secret())?);
            }
            Authentication::ClientCredentials(found) => credentials = Some(Arc::clone(found)),
        }
        Ok(Self { url, secrets, headers, credentials })
    }

    /// The same endpoint at another address, for one whose address has a place to fill.
    #[must_use]
    pub fn at(&self, url: Url) -> Self {
        Self { url, ..self.clone() }
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn secrets(&self) -> &[Secret] {
        &self.secrets
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Whether a 401 of this endpoint can be answered with a new token.
    pub(crate) fn renewal(&self) -> TokenRefresh {
        match self.credentials {
            Some(_) => TokenRefresh::Possible,
            None => TokenRefresh::Spent,
        }
    }

    pub(crate) fn credentials(&self) -> Option<&Arc<ClientCredentials>> {
        self.credentials.as_ref()
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEndpoint {
    #[error("`{0}` cannot be a header name")]
    HeaderName(String),
    #[error("the value of header `{0}` cannot be sent")]
    HeaderValue(String),
    #[error("header `{0}` is set by the service")]
    Reserved(String),
    #[error("the endpoint's credentials hold characters that cannot be sent")]
    Credentials,
}

/// Checks one of a merchant's own headers; it may not replace what the service sets.
pub fn own_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), BadEndpoint> {
    let parsed = header_name(name)?;
    if is_reserved(&parsed) {
        return Err(BadEndpoint::Reserved(name.to_owned()));
    }
    match HeaderValue::from_str(value) {
        Ok(value) => Ok((parsed, value)),
        Err(_) => Err(BadEndpoint::HeaderValue(name.to_owned())),
    }
}

const RESERVED: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::AUTHORIZATION,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

const RESERVED_PREFIXES: &[&str] =
    &["webhook-", "x-service-", "traceparent", "tracestate", "keep-alive", "proxy-"];

fn is_reserved(name: &HeaderName) -> bool {
    RESERVED.contains(name)
        || RESERVED_PREFIXES.iter().any(|prefix| name.as_str().starts_with(prefix))
}

fn header_name(name: &str) -> Result<HeaderName, BadEndpoint> {
    name.parse().ok().ok_or_else(|| BadEndpoint::HeaderName(name.to_owned()))
}

fn sensitive(value: &str) -> Result<HeaderValue, BadEndpoint> {
    let mut value = HeaderValue::from_str(value).ok().ok_or(BadEndpoint::Credentials)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::{Authentication, BadEndpoint, Endpoint, own_header};

    fn endpoint(
        authentication: &Authentication,
        headers: &[(&str, &str)],
    ) -> Result<Endpoint, BadEndpoint> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let url = "https://merchant.example/rmas".parse().unwrap();
        Endpoint::new(url, Vec::new(), authentication, &headers)
    }

    #[track_caller]
    fn check(authentication: &Authentication, want: &[(&str, &str)]) {
        let endpoint = endpoint(authentication, &[]).unwrap();
        let headers: Vec<_> = endpoint
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, want);
        assert!(endpoint.headers().values().all(|value| value.is_sensitive()));
    }

    #[test]
    fn authentication_becomes_a_header() {
        check(&Authentication::None, &[]);
        check(
            &Authentication::Basic { user: "Aladdin".into(), password: "open sesame".into() },
            &[("authorization", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")],
        );
        check(&Authentication::Bearer("t0k3n".into()), &[("authorization", "Bearer t0k3n")]);
        let api_key = |header: &str, key: &str| Authentication::ApiKey {
            header: header.into(),
            key: SecretString::from(key),
        };
        check(&api_key("X-Api-Key", "k"), &[("x-api-key", "k")]);
        check(&api_key("Authorization", "Token k"), &[("authorization", "Token k")]);
        for (header, key, want) in [
            ("webhook-id", "k", BadEndpoint::Reserved("webhook-id".into())),
            ("bad name", "k", BadEndpoint::HeaderName("bad name".into())),
            ("x-api-key", "two\nlines", BadEndpoint::Credentials),
        ] {
            assert_eq!(endpoint(&api_key(header, key), &[]).unwrap_err(), want);
        }
        let shown = format!("{:?}", endpoint(&api_key("x-api-key", "geheim"), &[]).unwrap());
        assert!(!shown.contains("geheim"), "{shown}");
    }

    #[test]
    fn own_headers_may_not_replace_the_services() {
        assert!(own_header("X-Tenant", "blue").is_ok());
        assert!(endpoint(&Authentication::None, &[("X-Tenant", "blue")]).is_ok());
        for name in [
            "Host",
            "content-length",
            "Content-Type",
            "Transfer-Encoding",
            "authorization",
            "Webhook-Signature",
            "X-Service-Event",
            "traceparent",
            "Proxy-Connection",
        ] {
            assert_eq!(own_header(name, "x"), Err(BadEndpoint::Reserved(name.into())), "{name}");
        }
        assert_eq!(own_header("a b", "x"), Err(BadEndpoint::HeaderName("a b".into())));
        assert_eq!(own_header("x-a", "a\r\nb: c"), Err(BadEndpoint::HeaderValue("x-a".into())));
    }
}
