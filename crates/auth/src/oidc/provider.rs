//! The OpenID provider: its discovery document, its keys and its token endpoint.

use std::{sync::Arc, time::Duration};

use jsonwebtoken::{Algorithm, jwk::Jwk};
use moka::future::Cache;
use oauth2::{
    AuthType, AuthUrl, AuthorizationCode, ClientId, ClientSecret, EndpointNotSet, EndpointSet,
    ExtraTokenFields, HttpRequest, HttpResponse, PkceCodeVerifier, RedirectUrl, RequestTokenError,
    StandardRevocableToken, StandardTokenResponse, TokenUrl,
    basic::{
        BasicErrorResponse, BasicErrorResponseType, BasicRevocationErrorResponse,
        BasicTokenIntrospectionResponse, BasicTokenType,
    },
};
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

use super::{
    keys::find,
    settings::{Settings, is_protected},
};
use crate::provider_error::{MAX_RESPONSE_BYTES, ProviderError};

const TIMEOUT: Duration = Duration::from_secs(5);
/// Keys are also read again when a token names an unknown key.
const CACHE_TTL: Duration = Duration::from_secs(3600);

/// The part of the discovery document that is used (OpenID Connect Discovery, 3).
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    issuer: String,
    authorization_endpoint: AuthUrl,
    token_endpoint: TokenUrl,
    jwks_uri: Url,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Metadata {
    fn check(&self, issuer: &str) -> Result<(), ProviderError> {
        if self.issuer != issuer {
            return Err(ProviderError::Metadata("it names another issuer"));
        }
        let urls = [self.authorization_endpoint.url(), self.token_endpoint.url(), &self.jwks_uri];
        if urls.into_iter().all(is_protected) {
            Ok(())
        } else {
            Err(ProviderError::Metadata("it has a URL that is not https"))
        }
    }

    /// HTTP Basic is the default (OpenID Connect Discovery, 3).
    fn auth_type(&self) -> AuthType {
        let supports = |method: &str| {
            let supported = self.token_endpoint_auth_methods_supported.as_ref();
            supported.is_none_or(|methods| methods.iter().any(|known| known == method))
        };
        if supports("client_secret_basic") { AuthType::BasicAuth } else { AuthType::RequestBody }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct IdTokenField {
    id_token: String,
}

impl ExtraTokenFields for IdTokenField {}

pub(super) type OauthClient<AuthState = EndpointSet, TokenState = EndpointSet> = oauth2::Client<
    BasicErrorResponse,
    StandardTokenResponse<IdTokenField, BasicTokenType>,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    AuthState,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    TokenState,
>;

pub(super) struct Provider {
    http: reqwest::Client,
    pub(super) settings: Settings,
    redirect_url: RedirectUrl,
    metadata: Cache<(), Arc<Metadata>>,
    keys: Cache<(), Arc<Vec<Jwk>>>,
}

impl Provider {
    pub(super) fn new(settings: Settings, redirect_url: RedirectUrl) -> anyhow::Result<Self> {
        Ok(Self {
            http: platform::http_client(TIMEOUT)?,
            settings,
            redirect_url,
            metadata: Cache::builder().max_capacity(1).time_to_live(CACHE_TTL).build(),
            keys: Cache::builder().max_capacity(1).time_to_live(CACHE_TTL).build(),
        })
    }

    pub(super) async fn oauth_client(&self) -> Result<OauthClient, ProviderError> {
        let metadata = self.metadata().await?;
        let client = OauthClient::<EndpointNotSet, EndpointNotSet>::new(ClientId::new(
            self.settings.client_id.clone(),
        ))
        .set_auth_uri(metadata.authorization_endpoint.clone())
        .set_token_uri(metadata.token_endpoint.clone())
        .set_redirect_uri(self.redirect_url.clone())
        .set_auth_type(metadata.auth_type());
        Ok(match self.settings.client_secret.expose_secret() {
            // A public client has no secret.
            "" => client,
            secret => client.set_client_secret(ClientSecret::new(secret.to_owned())),
        })
    }

    /// Exchanges a code for an ID token.
    pub(super) async fn id_token(
        &self,
        code: String,
        verifier: String,
    ) -> Result<String, ProviderError> {
        let client = self.oauth_client().await?;
        let response = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier))
            .request_async(&|request| send(self.http.clone(), request))
            .await;
        response.map(|response| response.extra_fields().id_token.clone()).map_err(token_error)
    }

    /// The key that verifies signatures with this algorithm and key id. Unknown keys may be new, so the
    /// keys are then read again.
    pub(super) async fn key(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
    ) -> Result<Option<Jwk>, ProviderError> {
        if let Some(key) = find(&self.keys().await?, algorithm, id) {
            return Ok(Some(key.clone()));
        }
        self.keys.invalidate(&()).await;
        Ok(find(&self.keys().await?, algorithm, id).cloned())
    }

    async fn metadata(&self) -> Result<Arc<Metadata>, ProviderError> {
        let load = async {
            let issuer = &self.settings.issuer;
            let base = issuer.strip_suffix('/').unwrap_or(issuer);
            let url = format!("{base}/.well-known/openid-configuration");
            let metadata: Metadata = self.fetch(&url).await?;
            metadata.check(issuer)?;
            Ok::<_, ProviderError>(Arc::new(metadata))
        };
        Ok(self.metadata.try_get_with((), load).await?)
    }

    async fn keys(&self) -> Result<Arc<Vec<Jwk>>, ProviderError> {
        #[derive(Deserialize)]
        struct Published {
            keys: Vec<serde_json::Value>,
        }
        let load = async {
            let metadata = self.metadata().await?;
            let Published { keys } = self.fetch(metadata.jwks_uri.as_str()).await?;
            // A key of another type must not hide the others.
            let readable = keys.into_iter().filter_map(|key| serde_json::from_value(key).ok());
            Ok::<_, ProviderError>(Arc::new(readable.collect()))
        };
        Ok(self.keys.try_get_with((), load).await?)
    }

    async fn fetch<T: DeserializeOwned>(&self, url: &str) -> Result<T, ProviderError> {
        let response = self.http.get(url).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&read_body(response).await?)?)
    }
}

/// Sends a request of the OAuth library with our HTTP client, which limits the response.
async fn send(http: reqwest::Client, request: HttpRequest) -> Result<HttpResponse, ProviderError> {
    let received = http.execute(request.try_into()?).await?;
    let status = received.status();
    let headers = received.headers().clone();
    let mut response = HttpResponse::new(read_body(received).await?);
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Ok(response)
}

async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, ProviderError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
            return Err(ProviderError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Leaves out the error description, in which a provider may quote our secret.
fn token_error(error: RequestTokenError<ProviderError, BasicErrorResponse>) -> ProviderError {
    match error {
        RequestTokenError::Request(error) => error,
        RequestTokenError::ServerResponse(response) => match response.error() {
            BasicErrorResponseType::InvalidGrant => ProviderError::InvalidCode,
            other => ProviderError::Refused(other.as_ref().chars().take(100).collect()),
        },
        RequestTokenError::Parse(error, _) => ProviderError::Json(error.into_inner()),
        RequestTokenError::Other(reason) => ProviderError::Refused(reason),
    }
}
