//! The authentication of requests to a merchant's endpoint.
//!
//! See docs/decisions/endpoint-authentication.md.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::guard::Guard;
use super::headers::{
    basic_username, filled_secret, filled_value, header_value, key_header, scope_part,
    secret_value, session_token,
};
use super::pem::{certificate_pem, private_key_pem};
use super::secret_url::SecretUrl;
use super::urls::secret_url;
use crate::json::{Object, one_of, variant};

/// The credentials that the endpoint requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    bound(
        serialize = "S: Serialize + Display",
        deserialize = "S: Deserialize<'de> + From<String>"
    )
)]
pub enum Authentication<S> {
    None,
    Basic {
        #[schema(max_length = 1000)]
        username: String,
        password: S,
    },
    Bearer {
        token: S,
    },
    ApiKey {
        #[schema(min_length = 1, max_length = 100)]
        header: String,
        key: S,
    },
    Oauth2 {
        #[schema(value_type = String, min_length = 1, max_length = 2000)]
        token_url: SecretUrl<S>,
        #[schema(min_length = 1, max_length = 1000)]
        client_id: String,
        client_secret: S,
        #[schema(max_length = 1000)]
        scope: Option<String>,
        /// Defaults to `basic`.
        #[schema(required = false)]
        credentials_in: CredentialsIn,
    },
    /// TLS with a client certificate.
    ClientCertificate {
        /// The certificate and its intermediate certificates in PEM, the certificate first.
        certificate: String,
        /// The private key of the certificate in PEM, not encrypted.
        private_key: S,
    },
    /// AWS Signature Version 4.
    AwsSigv4 {
        #[schema(min_length = 1, max_length = 100)]
        access_key_id: String,
        secret_access_key: S,
        /// For temporary credentials only.
        session_token: Option<S>,
        #[schema(min_length = 1, max_length = 100)]
        region: String,
        /// For example `execute-api`.
        #[schema(min_length = 1, max_length = 100)]
        service: String,
    },
}

/// The part of a token request that carries the client's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CredentialsIn {
    Body,
    Basic,
}

impl<S> Authentication<S> {
    /// Converts every secret to another form.
    pub fn map<T, E>(
        &self,
        mut convert: impl FnMut(&S) -> Result<T, E>,
    ) -> Result<Authentication<T>, E> {
        Ok(match self {
            Self::None => Authentication::None,
            Self::Basic { username, password } => {
                Authentication::Basic { username: username.clone(), password: convert(password)? }
            }
            Self::Bearer { token } => Authentication::Bearer { token: convert(token)? },
            Self::ApiKey { header, key } => {
                Authentication::ApiKey { header: header.clone(), key: convert(key)? }
            }
            Self::Oauth2 { token_url, client_id, client_secret, scope, credentials_in } => {
                Authentication::Oauth2 {
                    token_url: token_url.map(&mut convert)?,
                    client_id: client_id.clone(),
                    client_secret: convert(client_secret)?,
                    scope: scope.clone(),
                    credentials_in: *credentials_in,
                }
            }
            Self::ClientCertificate { certificate, private_key } => {
                Authentication::ClientCertificate {
                    certificate: certificate.clone(),
                    private_key: convert(private_key)?,
                }
            }
            Self::AwsSigv4 { access_key_id, secret_access_key, session_token, region, service } => {
                Authentication::AwsSigv4 {
                    access_key_id: access_key_id.clone(),
                    secret_access_key: convert(secret_access_key)?,
                    session_token: session_token.as_ref().map(&mut convert).transpose()?,
                    region: region.clone(),
                    service: service.clone(),
                }
            }
        })
    }
}

impl Authentication<String> {
    pub(super) fn read(document: &Object<'_>, guard: &Guard) -> Option<Self> {
        const KINDS: [&str; 7] =
            ["none", "basic", "bearer", "api_key", "oauth2", "client_certificate", "aws_sigv4"];
        let reject_unknown = |fields: &[&str]| {
            document.reject_unknown(&[&["kind"], fields].concat());
        };
        match document.required("kind", one_of(&KINDS.map(|kind| (kind, kind))))? {
            "basic" => {
                reject_unknown(&["username", "password"]);
                let username = document.required("username", basic_username);
                let password = document.required("password", secret_value);
                Some(Self::Basic { username: username?, password: password? })
            }
            "bearer" => {
                reject_unknown(&["token"]);
                Some(Self::Bearer { token: document.required("token", filled_secret)? })
            }
            "api_key" => {
                reject_unknown(&["header", "key"]);
                let header = document.required("header", key_header);
                let key = document.required("key", filled_secret);
                Some(Self::ApiKey { header: header?, key: key? })
            }
            "oauth2" => Self::read_oauth2(document, guard),
            "client_certificate" => {
                reject_unknown(&["certificate", "private_key"]);
                let certificate = document.required("certificate", certificate_pem);
                let private_key = document.required("private_key", private_key_pem);
                Some(Self::ClientCertificate {
                    certificate: certificate?,
                    private_key: private_key?,
                })
            }
            "aws_sigv4" => Self::read_aws_sigv4(document),
            _ => {
                reject_unknown(&[]);
                Some(Self::None)
            }
        }
    }

    fn read_aws_sigv4(document: &Object<'_>) -> Option<Self> {
        document.reject_unknown(&[
            "kind",
            "access_key_id",
            "secret_access_key",
            "session_token",
            "region",
            "service",
        ]);
        let access_key_id = document.required("access_key_id", scope_part);
        let secret_access_key = document.required("secret_access_key", filled_secret);
        let session_token = document.optional("session_token", session_token);
        let region = document.required("region", scope_part);
        let service = document.required("service", scope_part);
        Some(Self::AwsSigv4 {
            access_key_id: access_key_id?,
            secret_access_key: secret_access_key?,
            session_token: session_token?,
            region: region?,
            service: service?,
        })
    }

    fn read_oauth2(document: &Object<'_>, guard: &Guard) -> Option<Self> {
        document.reject_unknown(&[
            "kind",
            "token_url",
            "client_id",
            "client_secret",
            "scope",
            "credentials_in",
        ]);
        let token_url = document.required("token_url", secret_url(guard));
        let client_id = document.required("client_id", filled_value);
        let client_secret = document.required("client_secret", secret_value);
        let scope = document.optional("scope", header_value);
        let credentials_in = document.optional("credentials_in", variant);
        Some(Self::Oauth2 {
            token_url: token_url?,
            client_id: client_id?,
            client_secret: client_secret?,
            scope: scope?,
            credentials_in: credentials_in?.unwrap_or(CredentialsIn::Basic),
        })
    }
}
