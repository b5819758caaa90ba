//! A stand-in for auth: it publishes a key, signs tokens with it, and publishes merchants.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use domain::{
    event::Event as _,
    merchant::{Authentication, Endpoint, Interface, Merchant, MerchantChanged, Settings},
    message_kind::MessageKind,
};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use messaging::Envelope;
use platform::{
    Clock,
    identity::{AUDIENCE, Claims, TOKEN_TYPE},
};
use serde_json::json;

use crate::Namespace;

const KEY_ID: &str = "test";
/// The lifetime of the tokens that auth issues.
const LIFETIME: i64 = 90_000;

/// The issuer of tokens that a service under test accepts.
#[derive(Clone)]
pub struct Issuer {
    url: String,
    jwks_url: String,
    key: EncodingKey,
    /// The end of the names of the test's merchants.
    suffix: String,
}

impl Issuer {
    /// Starts an HTTP server that serves the public key.
    pub fn start() -> Self {
        let key = Ed25519KeyPair::generate().unwrap();
        let public = URL_SAFE_NO_PAD.encode(key.public_key());
        let jwks = json!({ "keys": [{
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": KEY_ID, "x": public,
        }] });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The client may have disconnected; the next request is still served.
                respond(stream, &jwks.to_string()).unwrap_or_else(|error| eprintln!("{error}"));
            }
        });
        let der = key.to_pkcs8v1().unwrap();
        let jwks_url = format!("{url}/.well-known/jwks.json");
        Self { url, jwks_url, key: EncodingKey::from_ed_der(der.as_ref()), suffix: String::new() }
    }

    /// The same issuer for a test whose merchants' names end with `suffix`.
    pub(crate) fn with_suffix(&self, suffix: &str) -> Self {
        Self { suffix: suffix.to_owned(), ..self.clone() }
    }

    /// The settings with which a service accepts the tokens of this issuer.
    pub fn settings(&self) -> [(&str, &str); 2] {
        [("IDENTITY__ISSUER", &self.url), ("IDENTITY__JWKS_URL", &self.jwks_url)]
    }

    /// A token for a client of `merchant`, or of the platform.
    pub fn token(&self, merchant: Option<&str>, scope: &str) -> String {
        self.token_of("client", merchant, scope)
    }

    /// A token for the client with this id.
    pub fn token_of(&self, client: &str, merchant: Option<&str>, scope: &str) -> String {
        self.token_until(client, merchant, scope, Clock::system().now().timestamp() + LIFETIME)
    }

    pub fn expired_token(&self, merchant: Option<&str>, scope: &str) -> String {
        self.token_until("client", merchant, scope, Clock::system().now().timestamp() - 1)
    }

    fn token_until(&self, client: &str, merchant: Option<&str>, scope: &str, exp: i64) -> String {
        let claims = Claims {
            iss: self.url.clone(),
            sub: client.to_owned(),
            aud: AUDIENCE.to_owned(),
            client_id: client.to_owned(),
            jti: uuid::Uuid::new_v4().to_string(),
            iat: exp - LIFETIME,
            exp,
            scope: scope.parse().unwrap(),
            merchant: merchant.map(|id| format!("{id}{}", self.suffix).parse().unwrap()),
            sid: None,
        };
        let mut header = Header::new(Algorithm::EdDSA);
        (header.typ, header.kid) = (Some(TOKEN_TYPE.to_owned()), Some(KEY_ID.to_owned()));
        jsonwebtoken::encode(&header, &claims, &self.key).unwrap()
    }
}

/// Publishes a merchant to the queue of `service`, as auth would. The service handles the event later.
pub async fn publish_merchant(namespace: &Namespace, service: &str, merchant: Merchant) {
    let event = MerchantChanged { merchant };
    let envelope = Envelope::new("auth", Clock::system().now(), &event);
    let queue = format!("{service}.{}", MerchantChanged::TYPE);
    namespace.publish_raw(&queue, &json!(envelope).to_string()).await;
}

/// A merchant with default settings and an endpoint for every message kind but label requests, which change the way of
/// a return. Each has the default path. Messages are sent only after the test sets a base URL.
pub fn merchant(identifier: &str) -> Merchant {
    let mut merchant = Merchant::new(identifier.parse().unwrap(), Settings::new(identifier));
    for kind in MessageKind::ALL.into_iter().filter(|kind| *kind != MessageKind::LabelRequest) {
        add_endpoint(&mut merchant, kind);
    }
    merchant
}

/// Adds an endpoint with the default path.
pub fn add_endpoint(merchant: &mut Merchant, kind: MessageKind) {
    let endpoint = Endpoint {
        url: None,
        path: None,
        headers: BTreeMap::new(),
        authentication: Authentication::None,
        certificate_expires_at: None,
        timeout_ms: None,
        version: None,
        paused: false,
        signing_secrets: Vec::new(),
    };
    merchant.endpoints.insert(Interface::Message(kind), Box::new(endpoint));
}

fn respond(stream: TcpStream, body: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    reader.get_mut().write_all(format!("{head}{body}").as_bytes())
}
