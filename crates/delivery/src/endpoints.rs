//! Merchants' endpoints, opened: from the merchants' settings to what can be dialled.
//!
//! An opened endpoint is used until the merchant changes or one of its signing secrets expires,
//! so a change takes effect on the next attempt and opening secrets costs nothing in between.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::access::MerchantId;
use domain::merchant::{self, CredentialsIn, Interface, Merchant, Sealed};
use merchants::Merchants;
use platform::Timestamp;
use platform::sealing::{SealError, Sealer};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::endpoint::{Authentication, BadEndpoint, Endpoint};
use crate::signing::{BadSecret, Secret};
use crate::tokens::{ClientCredentials, Placement};

/// Why a merchant cannot be sent anything through an interface.
#[derive(Debug, thiserror::Error)]
pub enum NoEndpoint {
    #[error("merchant {0} is not known")]
    Unknown(String),
    #[error("no address is set for {0}")]
    NoAddress(Interface),
    #[error("the address of {0} is not a URL")]
    BadUrl(Interface, #[source] url::ParseError),
    #[error("a secret of {0} cannot be opened")]
    Sealed(Interface, #[source] SealError),
    #[error("a signing secret of {0} cannot be used")]
    Secret(Interface, #[source] BadSecret),
    #[error("the settings of {0} cannot be used")]
    Settings(Interface, #[source] BadEndpoint),
}

/// An endpoint that is ready to be dialled, and what else its merchant said about it.
#[derive(Debug)]
pub struct Opened {
    pub endpoint: Endpoint,
    /// The whole of one attempt, when the merchant set it.
    pub timeout: Option<Duration>,
    /// Of the merchant it was opened from.
    pub version: i64,
    /// When the set of its valid signing secrets changes.
    until: Option<Timestamp>,
}

/// All endpoints of this process.
pub struct Endpoints {
    merchants: Arc<Merchants>,
    sealer: Arc<Sealer>,
    opened: RwLock<HashMap<(MerchantId, Interface), Arc<Opened>>>,
}

impl Endpoints {
    pub fn new(merchants: Arc<Merchants>, sealer: Arc<Sealer>) -> Self {
        Self { merchants, sealer, opened: RwLock::default() }
    }

    /// The endpoint as the merchant wants it now.
    pub fn find(
        &self,
        merchant: &str,
        interface: Interface,
        now: Timestamp,
    ) -> Result<Arc<Opened>, NoEndpoint> {
        let unknown = || NoEndpoint::Unknown(merchant.to_owned());
        let id: MerchantId = merchant.parse().map_err(|_not_an_id| unknown())?;
        let merchant = self.merchants.get(&id).ok_or_else(unknown)?;
        let key = (id, interface);
        let known = self.opened.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let current = |opened: &Arc<Opened>| {
            opened.version == merchant.version && opened.until.is_none_or(|until| now < until)
        };
        if let Some(opened) = known.filter(current) {
            return Ok(opened);
        }
        let opened = Arc::new(open(&self.sealer, &merchant, interface, now)?);
        let mut all = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(key, opened.clone());
        Ok(opened)
    }
}

fn open(
    sealer: &Sealer,
    merchant: &Merchant,
    interface: Interface,
    now: Timestamp,
) -> Result<Opened, NoEndpoint> {
    let context = interface.sealing_context(&merchant.identifier);
    let unseal = |sealed: &Sealed| {
        sealer.open(&context, sealed).map_err(|error| NoEndpoint::Sealed(interface, error))
    };
    let sealed = merchant.endpoints.get(&interface);
    let clear = sealed.map(|endpoint| endpoint.map(unseal)).transpose()?;
    let url = address(merchant, clear.as_ref(), interface)?;
    let Some(clear) = clear else {
        let endpoint = Endpoint::new(url, Vec::new(), &Authentication::None, &[])
            .map_err(|error| NoEndpoint::Settings(interface, error))?;
        return Ok(Opened { endpoint, timeout: None, version: merchant.version, until: None });
    };
    let valid = clear.signing_secrets.iter().filter(|s| s.expires_at.is_none_or(|at| now < at));
    let until = valid.clone().filter_map(|secret| secret.expires_at).min();
    let secrets = valid
        .map(|secret| Secret::parse(secret.secret.expose_secret()))
        .collect::<Result<_, _>>()
        .map_err(|error| NoEndpoint::Secret(interface, error))?;
    let authentication = authentication(&clear.authentication, interface)?;
    let headers: Vec<_> = clear.headers.clone().into_iter().collect();
    let endpoint = Endpoint::new(url, secrets, &authentication, &headers)
        .map_err(|error| NoEndpoint::Settings(interface, error))?;
    let timeout = clear.timeout_ms.map(|millis| Duration::from_millis(millis.into()));
    Ok(Opened { endpoint, timeout, version: merchant.version, until })
}

/// The whole URL, or the merchant's base with the interface's path below it. Messages go only where
/// an endpoint was set: without one they could not be signed. A question needs no signature.
fn address(
    merchant: &Merchant,
    endpoint: Option<&merchant::Endpoint<SecretString>>,
    interface: Interface,
) -> Result<Url, NoEndpoint> {
    if endpoint.is_none() && interface != Interface::Variants {
        return Err(NoEndpoint::NoAddress(interface));
    }
    let whole = endpoint.and_then(|endpoint| endpoint.url.clone());
    let below = || {
        let base = merchant.settings.base_url.as_ref()?;
        let own = endpoint.and_then(|endpoint| endpoint.path.as_deref());
        let path = own.unwrap_or_else(|| interface.default_path());
        Some(format!("{}/{}", base.trim_end_matches('/'), path.trim_start_matches('/')))
    };
    let text = whole.or_else(below).ok_or(NoEndpoint::NoAddress(interface))?;
    text.parse().map_err(|error| NoEndpoint::BadUrl(interface, error))
}

fn authentication(
    authentication: &merchant::Authentication<SecretString>,
    interface: Interface,
) -> Result<Authentication, NoEndpoint> {
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
            let token_url =
                token_url.parse().map_err(|error| NoEndpoint::BadUrl(interface, error))?;
            let placement = match credentials_in {
                CredentialsIn::Body => Placement::Body,
                CredentialsIn::Basic => Placement::Basic,
            };
            let credentials =
                ClientCredentials { token_url, client_id, client_secret, scope, placement };
            Authentication::ClientCredentials(Arc::new(credentials))
        }
    })
}
