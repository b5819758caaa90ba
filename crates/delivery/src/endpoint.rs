//! A merchant's endpoint, ready for requests: URL, signing secrets, headers, credentials.
//!
//! Construction validates everything, so sending a message cannot fail on the configuration. Secrets
//! are never printed.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use domain::merchant::is_reserved_header;
use platform::{ClientIdentity, signing::Secret};
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::sigv4::AwsCredentials;
use crate::tokens::ClientCredentials;

/// How we authenticate to an endpoint.
#[derive(Clone, Debug)]
pub enum Authentication {
    None,
    Basic { user: String, password: SecretString },
    Bearer(SecretString),
    ApiKey { header: String, key: SecretString },
    ClientCredentials(Arc<ClientCredentials>),
    ClientCertificate(ClientIdentity),
    AwsSigv4(AwsCredentials),
}

#[derive(Clone, Debug)]
pub struct Endpoint {
    url: Url,
    secrets: Vec<Secret>,
    /// The merchant's custom headers and static authentication.
    headers: HeaderMap,
    credentials: Option<Arc<ClientCredentials>>,
    identity: Option<ClientIdentity>,
    aws: Option<Arc<AwsCredentials>>,
    /// Secrets that our requests contain, to be masked in logged responses.
    sent_secrets: Vec<SecretString>,
}

/// A shorter header value or query string is taken for a name or a number, not for a secret.
const MIN_SECRET_BYTES: usize = 8;

impl Endpoint {
    pub fn new(
        url: Url,
        secrets: Vec<Secret>,
        authentication: &Authentication,
        custom_headers: &[(String, String)],
    ) -> Result<Self, EndpointError> {
        let mut headers = HeaderMap::with_capacity(custom_headers.len() + 1);
        for (name, value) in custom_headers {
            let (name, value) = custom_header(name, value)?;
            headers.append(name, value);
        }
        let values = custom_headers.iter().map(|(_, value)| value.clone());
        let parameters = url.query_pairs().map(|(_, value)| value.into_owned());
        let mut sent_secrets: Vec<_> = values
            .chain(url.query().map(str::to_owned))
            .chain(parameters)
            .filter(|value| value.len() >= MIN_SECRET_BYTES)
            .map(SecretString::from)
            .collect();
        let mut credentials = None;
        let mut identity = None;
        let mut aws = None;
        match authentication {
            Authentication::None => {}
            Authentication::Basic { user, password } => {
                let pair = format!("{user}:{}", password.expose_secret());
                let encoded = BASE64_STANDARD.encode(pair);
                let value = format!("Basic {encoded}");
                sent_secrets.extend([encoded.into(), password.clone()]);
                headers.insert(header::AUTHORIZATION, sensitive(&value)?);
            }
            Authentication::Bearer(token) => {
                let value = format!("Bearer {}", token.expose_secret());
                sent_secrets.push(token.clone());
                headers.insert(header::AUTHORIZATION, sensitive(&value)?);
            }
            Authentication::ApiKey { header, key } => {
                let name = header_name(header)?;
                if name != header::AUTHORIZATION && is_reserved_header(header) {
                    return Err(EndpointError::Reserved(header.clone()));
                }
                headers.insert(name, sensitive(key.expose_secret())?);
                sent_secrets.push(key.clone());
            }
            Authentication::ClientCredentials(oauth) => {
                sent_secrets.push(oauth.client_secret.clone());
                credentials = Some(Arc::clone(oauth));
            }
            Authentication::ClientCertificate(certificate) => identity = Some(certificate.clone()),
            Authentication::AwsSigv4(credentials) => {
                sent_secrets.extend(credentials.session_token.clone());
                aws = Some(Arc::new(credentials.clone()));
            }
        }
        Ok(Self { url, secrets, headers, credentials, identity, aws, sent_secrets })
    }

    /// Replaces the URL, for an endpoint whose URL has a placeholder.
    #[must_use]
    pub fn with_url(&self, url: Url) -> Self {
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

    pub(crate) fn sent_secrets(&self) -> impl Iterator<Item = &str> {
        self.sent_secrets.iter().map(ExposeSecret::expose_secret)
    }

    pub(crate) fn credentials(&self) -> Option<&Arc<ClientCredentials>> {
        self.credentials.as_ref()
    }

    /// The client certificate of the connections to the endpoint.
    pub(crate) fn identity(&self) -> Option<&ClientIdentity> {
        self.identity.as_ref()
    }

    /// The credentials that sign each request.
    pub(crate) fn aws(&self) -> Option<&AwsCredentials> {
        self.aws.as_deref()
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    #[error("`{0}` is not a valid header name")]
    HeaderName(String),
    #[error("the value of header `{0}` is invalid")]
    HeaderValue(String),
    #[error("header `{0}` is set by the service")]
    Reserved(String),
    #[error("the credentials of the endpoint contain invalid characters")]
    Credentials,
}

/// Validates a merchant's custom header. It must not replace a header that the service sets.
pub fn custom_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), EndpointError> {
    let parsed = header_name(name)?;
    if is_reserved_header(name) {
        return Err(EndpointError::Reserved(name.to_owned()));
    }
    let value = sensitive(value).map_err(|_invalid| EndpointError::HeaderValue(name.to_owned()))?;
    Ok((parsed, value))
}

fn header_name(name: &str) -> Result<HeaderName, EndpointError> {
    name.parse().ok().ok_or_else(|| EndpointError::HeaderName(name.to_owned()))
}

fn sensitive(value: &str) -> Result<HeaderValue, EndpointError> {
    let mut value = HeaderValue::from_str(value).ok().ok_or(EndpointError::Credentials)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::{Authentication, Endpoint, EndpointError, custom_header};

    fn endpoint(
        authentication: &Authentication,
        headers: &[(&str, &str)],
    ) -> Result<Endpoint, EndpointError> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let url = "https://merchant.example/rmas".parse().unwrap();
        Endpoint::new(url, Vec::new(), authentication, &headers)
    }

    #[track_caller]
    fn check(authentication: &Authentication, expected: &[(&str, &str)]) {
        let endpoint = endpoint(authentication, &[]).unwrap();
        let headers: Vec<_> = endpoint
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(headers, expected);
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
        for (header, key, expected) in [
            ("webhook-id", "k", EndpointError::Reserved("webhook-id".into())),
            ("bad name", "k", EndpointError::HeaderName("bad name".into())),
            ("x-api-key", "two\nlines", EndpointError::Credentials),
        ] {
            assert_eq!(endpoint(&api_key(header, key), &[]).unwrap_err(), expected);
        }
        let shown = format!("{:?}", endpoint(&api_key("x-api-key", "geheim"), &[]).unwrap());
        assert!(!shown.contains("geheim"), "{shown}");
    }

    #[test]
    fn custom_headers_cannot_replace_reserved_ones() {
        assert!(custom_header("X-Tenant", "blue").is_ok());
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
            assert_eq!(
                custom_header(name, "x"),
                Err(EndpointError::Reserved(name.into())),
                "{name}"
            );
        }
        assert_eq!(custom_header("a b", "x"), Err(EndpointError::HeaderName("a b".into())));
        assert_eq!(
            custom_header("x-a", "a\r\nb: c"),
            Err(EndpointError::HeaderValue("x-a".into()))
        );
    }
}
