//! Resolves merchants' endpoints: from the settings with sealed secrets to [`Endpoint`].
//!
//! A resolved endpoint is cached until its merchant changes or one of its signing secrets expires.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::access::MerchantId;
use domain::merchant::{self, CredentialsIn, Interface, Merchant, Sealed, SecretUrl};
use domain::message_kind::MessageVersion;
use merchants::Merchants;
use platform::sealing::{SealError, Sealer};
use platform::signing::{Secret, SecretError};
use platform::{ClientIdentity, IdentityError, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::endpoint::{Authentication, Endpoint, EndpointError};
use crate::sigv4::AwsCredentials;
use crate::tokens::{ClientCredentials, Placement};

/// An endpoint that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    #[error("merchant {0} is unknown")]
    UnknownMerchant(String),
    #[error("no URL is set for {0}")]
    NoUrl(Interface),
    #[error("the URL of {0} is invalid")]
    InvalidUrl(Interface, #[source] url::ParseError),
    #[error("the path of {0} leads out of the merchant's base URL")]
    PathEscapes(Interface),
    #[error("a secret of {0} cannot be unsealed")]
    Sealed(Interface, #[source] SealError),
    #[error("a signing secret of {0} is invalid")]
    Secret(Interface, #[source] SecretError),
    #[error("the client certificate of {0} is invalid")]
    Identity(Interface, #[source] IdentityError),
    #[error("the settings of {0} are invalid")]
    Settings(Interface, #[source] EndpointError),
}

#[derive(Debug)]
pub struct ResolvedEndpoint {
    pub endpoint: Endpoint,
    /// The message version that the merchant chose, else that of the contract.
    pub message_version: MessageVersion,
    /// Timeout of an attempt, if the merchant set one.
    pub timeout: Option<Duration>,
    /// Version of the merchant.
    pub version: i64,
    /// Time at which the next signing secret expires.
    valid_until: Option<Timestamp>,
}

/// Cache of resolved endpoints.
pub struct Endpoints {
    merchants: Arc<Merchants>,
    sealer: Arc<Sealer>,
    resolved: RwLock<HashMap<(MerchantId, Interface), Arc<ResolvedEndpoint>>>,
}

impl Endpoints {
    pub fn new(merchants: Arc<Merchants>, sealer: Arc<Sealer>) -> Self {
        Self { merchants, sealer, resolved: RwLock::default() }
    }

    /// Returns the endpoint by the current settings of the merchant.
    pub fn find(
        &self,
        merchant: &str,
        interface: Interface,
        now: Timestamp,
    ) -> Result<Arc<ResolvedEndpoint>, ResolveError> {
        let unknown = || ResolveError::UnknownMerchant(merchant.to_owned());
        let id: MerchantId = merchant.parse().map_err(|_invalid_id| unknown())?;
        let merchant = self.merchants.get(&id).ok_or_else(unknown)?;
        let key = (id, interface);
        let cached =
            self.resolved.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let is_current = |cached: &Arc<ResolvedEndpoint>| {
            cached.version == merchant.version && cached.valid_until.is_none_or(|at| now < at)
        };
        if let Some(endpoint) = cached.filter(is_current) {
            return Ok(endpoint);
        }
        let endpoint = Arc::new(resolve(&self.sealer, &merchant, interface, now)?);
        let mut resolved = self.resolved.write().unwrap_or_else(PoisonError::into_inner);
        resolved.insert(key, endpoint.clone());
        Ok(endpoint)
    }
}

fn resolve(
    sealer: &Sealer,
    merchant: &Merchant,
    interface: Interface,
    now: Timestamp,
) -> Result<ResolvedEndpoint, ResolveError> {
    let context = interface.sealing_context(&merchant.identifier);
    let unseal = |sealed: &Sealed| {
        sealer.open(&context, sealed).map_err(|error| ResolveError::Sealed(interface, error))
    };
    let sealed = merchant.endpoints.get(&interface);
    let settings = sealed.map(|endpoint| endpoint.map(unseal)).transpose()?;
    let url = url(merchant, settings.as_ref(), interface)?;
    let message_version = merchant.message_version(interface);
    let Some(settings) = settings else {
        let endpoint = Endpoint::new(url, Vec::new(), &Authentication::None, &[])
            .map_err(|error| ResolveError::Settings(interface, error))?;
        let version = merchant.version;
        let timeout = None;
        let valid_until = None;
        return Ok(ResolvedEndpoint { endpoint, message_version, timeout, version, valid_until });
    };
    let valid = settings.signing_secrets.iter().filter(|s| s.expires_at.is_none_or(|at| now < at));
    let valid_until = valid.clone().filter_map(|secret| secret.expires_at).min();
    let secrets = valid
        .map(|secret| Secret::parse(secret.secret.expose_secret()))
        .collect::<Result<_, _>>()
        .map_err(|error| ResolveError::Secret(interface, error))?;
    let authentication = authentication(&settings.authentication, interface)?;
    let header =
        |(name, value): (&String, &SecretString)| (name.clone(), value.expose_secret().to_owned());
    let headers: Vec<_> = settings.headers.iter().map(header).collect();
    let endpoint = Endpoint::new(url, secrets, &authentication, &headers)
        .map_err(|error| ResolveError::Settings(interface, error))?;
    let timeout = settings.timeout_ms.map(|millis| Duration::from_millis(millis.into()));
    let version = merchant.version;
    Ok(ResolvedEndpoint { endpoint, message_version, timeout, version, valid_until })
}

/// Returns the URL of the endpoint, or the merchant's base URL with the path of the interface.
/// Messages need a configured endpoint, because they must be signed; the variants query does not.
fn url(
    merchant: &Merchant,
    endpoint: Option<&merchant::Endpoint<SecretString>>,
    interface: Interface,
) -> Result<Url, ResolveError> {
    if endpoint.is_none() && interface != Interface::Variants {
        return Err(ResolveError::NoUrl(interface));
    }
    let invalid = |error| ResolveError::InvalidUrl(interface, error);
    if let Some(own_url) = endpoint.and_then(|endpoint| endpoint.url.as_ref()) {
        return whole_url(own_url).parse().map_err(invalid);
    }
    let base = merchant.settings.base_url.as_ref().ok_or(ResolveError::NoUrl(interface))?;
    let own_path = endpoint.and_then(|endpoint| endpoint.path.as_deref());
    let path = own_path.unwrap_or_else(|| interface.default_path());
    let base: Url = format!("{}/", base.trim_end_matches('/')).parse().map_err(invalid)?;
    let joined: Url = format!("{base}{}", path.trim_start_matches('/')).parse().map_err(invalid)?;
    // The parser removes segments such as `..`, also written as `%2e%2e` or between backslashes.
    if joined.path().starts_with(base.path()) {
        Ok(joined)
    } else {
        Err(ResolveError::PathEscapes(interface))
    }
}

/// A URL with its unsealed query.
fn whole_url(url: &SecretUrl<SecretString>) -> String {
    match &url.query {
        Some(query) => format!("{}?{}", url.base, query.expose_secret()),
        None => url.base.clone(),
    }
}

fn authentication(
    authentication: &merchant::Authentication<SecretString>,
    interface: Interface,
) -> Result<Authentication, ResolveError> {
    Ok(match authentication.clone() {
        merchant::Authentication::None => Authentication::None,
        merchant::Authentication::Basic { username, password } => {
            Authentication::Basic { user: username, password }
        }
        merchant::Authentication::Bearer { token } => Authentication::Bearer(token),
        merchant::Authentication::ApiKey { header, key } => Authentication::ApiKey { header, key },
        merchant::Authentication::Oauth2 {
            token_url,
            client_id,
            client_secret,
            scope,
            credentials_in,
        } => {
            let token_url = whole_url(&token_url)
                .parse()
                .map_err(|error| ResolveError::InvalidUrl(interface, error))?;
            let placement = match credentials_in {
                CredentialsIn::Body => Placement::Body,
                CredentialsIn::Basic => Placement::Basic,
            };
            let credentials =
                ClientCredentials { token_url, client_id, client_secret, scope, placement };
            Authentication::ClientCredentials(Arc::new(credentials))
        }
        merchant::Authentication::ClientCertificate { certificate, private_key } => {
            let identity = ClientIdentity::parse(&certificate, private_key.expose_secret())
                .map_err(|error| ResolveError::Identity(interface, error))?;
            Authentication::ClientCertificate(identity)
        }
        merchant::Authentication::AwsSigv4 {
            access_key_id,
            secret_access_key,
            session_token,
            region,
            service,
        } => Authentication::AwsSigv4(AwsCredentials {
            access_key_id,
            secret_access_key,
            session_token,
            region,
            service,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RMA: Interface = Interface::Message(domain::message_kind::MessageKind::Rma);

    fn resolve_path(base_url: &str, path: &str) -> Result<String, ResolveError> {
        let mut merchant = testkit::merchant("acme");
        merchant.settings.base_url = Some(base_url.to_owned());
        let endpoint = merchant::Endpoint {
            url: None,
            path: Some(path.to_owned()),
            headers: Default::default(),
            authentication: merchant::Authentication::None,
            certificate_expires_at: None,
            timeout_ms: None,
            version: None,
            recovery_replay_days: None,
            paused: false,
            signing_secrets: Vec::new(),
        };
        url(&merchant, Some(&endpoint), RMA).map(String::from)
    }

    #[test]
    fn header_values_and_url_queries_are_unsealed() {
        let keys = platform::config::List(vec![testkit::sealing_keys().into()]);
        let sealer = Sealer::new(&platform::sealing::Settings { keys }).unwrap();
        let mut merchant = testkit::merchant("acme");
        let context = RMA.sealing_context(&merchant.identifier);
        let seal = |secret: &str| sealer.seal(&context, secret).unwrap();
        let endpoint = merchant.endpoints.get_mut(&RMA).unwrap();
        let base = "https://acme.example/rmas".to_owned();
        endpoint.url = Some(SecretUrl { base, query: Some(seal("key=open-sesame")) });
        endpoint.headers.insert("x-shop".to_owned(), seal("seven"));
        let resolved = resolve(&sealer, &merchant, RMA, Timestamp::UNIX_EPOCH).unwrap();
        let endpoint = resolved.endpoint;
        assert_eq!(endpoint.url().as_str(), "https://acme.example/rmas?key=open-sesame");
        assert_eq!(endpoint.headers()["x-shop"], "seven");
        assert!(endpoint.headers()["x-shop"].is_sensitive());
    }

    #[test]
    fn a_path_is_below_the_base_url() {
        for (base_url, path, expected) in [
            ("https://acme.example", "/rmas", "https://acme.example/rmas"),
            ("https://acme.example/hooks/", "rmas?v=2", "https://acme.example/hooks/rmas?v=2"),
            (
                "https://acme.example/hooks",
                "//evil.example/x",
                "https://acme.example/hooks/evil.example/x",
            ),
            ("https://acme.example/hooks", "/a/../b", "https://acme.example/hooks/b"),
        ] {
            assert_eq!(resolve_path(base_url, path).unwrap(), expected);
        }
        for path in ["/../x", "/../../x", "/a/../../x", "/%2e%2E/x", "/..\\x", "/.\t./x", "/.."] {
            let resolved = resolve_path("https://acme.example/hooks", path);
            assert!(matches!(resolved, Err(ResolveError::PathEscapes(_))), "{path}: {resolved:?}");
        }
    }
}
