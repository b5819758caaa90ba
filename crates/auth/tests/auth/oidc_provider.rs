//! A small OpenID provider that tests can make misbehave.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer, dev::ServerHandle, get, http::header, post, web,
};
use aws_lc_rs::{
    digest::{SHA256, digest},
    encoding::AsDer as _,
    rsa::{self, KeySize},
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair},
};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};
use url::Url;

pub(crate) const CLIENT_ID: &str = "backhaul";
pub(crate) const CLIENT_SECRET: &str = "the provider's secret";

/// The length of the PKCS #8 header in front of a 2048-bit RSA key.
const RSA_HEADER: usize = 26;

/// A signing key with its id.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: String,
    algorithm: Algorithm,
    private: EncodingKey,
}

impl Key {
    pub(crate) fn generate(id: &str, algorithm: Algorithm) -> Self {
        let private = match algorithm {
            Algorithm::RS256 => {
                let pair = rsa::KeyPair::generate(KeySize::Rsa2048).unwrap();
                let der: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
                EncodingKey::from_rsa_der(&der.as_ref()[RSA_HEADER..])
            }
            Algorithm::ES256 => {
                let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
                EncodingKey::from_ec_der(pair.to_pkcs8v1().unwrap().as_ref())
            }
            _ => {
                let pair = Ed25519KeyPair::generate().unwrap();
                EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref())
            }
        };
        Self { id: id.to_owned(), algorithm, private }
    }

    fn public(&self) -> Jwk {
        let mut key = Jwk::from_encoding_key(&self.private, self.algorithm).unwrap();
        key.common.key_id = Some(self.id.clone());
        key
    }

    pub(crate) fn sign(&self, claims: &Value) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = Some(self.id.clone());
        jsonwebtoken::encode(&header, claims, &self.private).unwrap()
    }
}

/// A token with this header and without a signature.
pub(crate) fn unsigned(header: &Value, claims: &Value) -> String {
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    format!("{}.{}.", encode(header), encode(claims))
}

/// An authorization that waits for its code to be exchanged.
struct Authorization {
    challenge: String,
    redirect_uri: String,
    id_token: String,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) keys: Vec<Key>,
    /// Replaces members of the discovery document.
    pub(crate) metadata: HashMap<&'static str, Value>,
    pub(crate) key_requests: usize,
    authorizations: HashMap<String, Authorization>,
}

pub(crate) struct OidcProvider {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    server: ServerHandle,
}

impl OidcProvider {
    pub(crate) fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let shared = web::Data::from(state.clone());
        let server = HttpServer::new(move || {
            App::new()
                .app_data(shared.clone())
                .service(show_metadata)
                .service(show_keys)
                .service(issue_token)
        });
        let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", server.addrs()[0]);
        let server = server.run();
        let provider = Self { url, state, server: server.handle() };
        #[expect(clippy::disallowed_methods, reason = "lives as long as the test")]
        tokio::spawn(server);
        provider
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Signs a person in at the authorization URL. `id_token` gets the nonce. Returns the code and the
    /// state for the redirect.
    pub(crate) fn authorize(
        &self,
        authorization_url: &str,
        id_token: impl FnOnce(&str) -> String,
    ) -> (String, String) {
        let url: Url = authorization_url.parse().unwrap();
        assert!(authorization_url.starts_with(&format!("{}/authorize?", self.url)), "{url}");
        let query: HashMap<_, _> = url.query_pairs().into_owned().collect();
        assert_eq!((&*query["client_id"], &*query["response_type"]), (CLIENT_ID, "code"));
        assert_eq!(query["code_challenge_method"], "S256");
        assert!(query["scope"].split(' ').any(|scope| scope == "openid"), "{url}");
        let mut state = self.state();
        let code = format!("code-{}", state.authorizations.len());
        let authorization = Authorization {
            challenge: query["code_challenge"].clone(),
            redirect_uri: query["redirect_uri"].clone(),
            id_token: id_token(&query["nonce"]),
        };
        state.authorizations.insert(code.clone(), authorization);
        (code, query["state"].clone())
    }

    pub(crate) async fn stop(&self) {
        self.server.stop(false).await;
    }
}

#[get("/.well-known/openid-configuration")]
async fn show_metadata(request: HttpRequest, state: web::Data<Mutex<State>>) -> HttpResponse {
    let host = request.headers().get("host").unwrap().to_str().unwrap();
    let base = format!("http://{host}");
    let mut metadata = json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "jwks_uri": format!("{base}/keys"),
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
    });
    for (name, value) in &state.lock().unwrap().metadata {
        metadata[name] = value.clone();
    }
    HttpResponse::Ok().json(metadata)
}

#[get("/keys")]
async fn show_keys(state: web::Data<Mutex<State>>) -> HttpResponse {
    let mut state = state.lock().unwrap();
    state.key_requests += 1;
    // A key of an unknown type must not hide the others.
    let mut keys = vec![json!({"kty": "quantum", "kid": "q"})];
    keys.extend(state.keys.iter().map(|key| json!(key.public())));
    HttpResponse::Ok().json(json!({ "keys": keys }))
}

/// The token endpoint: a code works once, with its PKCE verifier, its redirect URI and the client's secret.
#[post("/token")]
async fn issue_token(
    request: HttpRequest,
    state: web::Data<Mutex<State>>,
    form: web::Form<HashMap<String, String>>,
) -> HttpResponse {
    let encoded: String = url::form_urlencoded::byte_serialize(CLIENT_SECRET.as_bytes()).collect();
    let expected = format!("Basic {}", STANDARD.encode(format!("{CLIENT_ID}:{encoded}")));
    let authorization = request.headers().get(header::AUTHORIZATION);
    if authorization.is_none_or(|value| value.to_str().unwrap() != expected) {
        return HttpResponse::Unauthorized().json(json!({"error": "invalid_client"}));
    }
    let challenge = digest(&SHA256, form["code_verifier"].as_bytes());
    let challenge = URL_SAFE_NO_PAD.encode(challenge.as_ref());
    let authorization = state.lock().unwrap().authorizations.remove(&form["code"]);
    let accepted = authorization.filter(|authorization| {
        authorization.challenge == challenge && authorization.redirect_uri == form["redirect_uri"]
    });
    match accepted {
        Some(authorization) => HttpResponse::Ok().json(json!({
            "access_token": "unused", "token_type": "Bearer", "expires_in": 60,
            "id_token": authorization.id_token,
        })),
        None => HttpResponse::BadRequest().json(json!({"error": "invalid_grant"})),
    }
}
