//! The log and the metric of rejected requests, and a service without a database and a broker. This is
//! a process of its own, because it captures the log.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot continue should panic"
)]

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use actix_web::{HttpResponse, get, web};
use aws_lc_rs::signature::Ed25519KeyPair;
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::access::{Revocation, Revoked, Scope};
use jsonwebtoken::{
    Algorithm, EncodingKey, Header,
    jwk::{Jwk, JwkSet},
};
use platform::{
    Clock, Problem, Process, Running, Service,
    identity::{AUDIENCE, Caller, Claims, TOKEN_TYPE, Verifier},
    settings,
};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa_actix_web::service_config::ServiceConfig;

const NO_DATABASE: &str = "[database]\nurl = \"\"";

/// A service with one operation, without a database and a broker.
struct Console;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The public key of tokens, as JSON. Without it the service accepts no tokens.
    key: Option<String>,
}

impl Service for Console {
    const NAME: &'static str = "console";
    const ABOUT: &'static str = "A service without a database";
    const DEFAULTS: &'static [&'static str] = &[NO_DATABASE];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        Vec::new()
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        config.service(list_orders).service(show_page);
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let Some(key) = settings.key else {
            return Ok((Self, Arc::new(Verifier::disabled(process.clock.clone()))));
        };
        let verifier = Verifier::new("test", process.clock.clone());
        verifier.set_keys(&JwkSet { keys: vec![serde_json::from_str(&key)?] });
        verifier.revocations().add(Revocation {
            revoked: Revoked::Client("revoked-client".to_owned()),
            expires_at: process.clock.now() + Duration::from_secs(60),
        });
        verifier.revocations().set_loaded();
        Ok((Self, Arc::new(verifier)))
    }
}

#[utoipa::path(security(("bearer" = ["orders"])), responses((status = 200)))]
#[get("/orders")]
async fn list_orders(caller: Caller) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Orders)?;
    Ok(HttpResponse::Ok().json(["order"]))
}

/// A page for shoppers, who have no token.
#[utoipa::path(responses((status = 404)))]
#[get("/{merchant}/page")]
async fn show_page(_: web::Path<String>) -> HttpResponse {
    HttpResponse::NotFound().finish()
}

/// A service with tables that was given no database.
struct WithTables;

impl Service for WithTables {
    const NAME: &'static str = "console";
    const ABOUT: &'static str = Console::ABOUT;
    const DEFAULTS: &'static [&'static str] = &[NO_DATABASE];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        const TABLES: EmbeddedMigrations = embed_migrations!("../../migrations/messaging");
        vec![TABLES]
    }

    fn routes(_: &mut ServiceConfig<'_>) {}

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        Console::start(process, settings).map(|(_, verifier)| (Self, verifier))
    }
}

async fn start<S: Service<Settings = Settings>>(
    settings: &[(&str, &str)],
) -> anyhow::Result<Running> {
    let environment: HashMap<_, _> = [("HTTP__WORKERS", "1")]
        .iter()
        .chain(settings)
        .map(|(key, value)| (format!("CONSOLE__{key}"), (*value).to_owned()))
        .collect();
    let (platform, own) = settings::load(S::NAME, S::DEFAULTS, None, environment)?;
    Running::start::<S>(platform, own, Clock::system()).await
}

fn client() -> reqwest::Client {
    platform::http_client(Duration::from_secs(300)).unwrap()
}

/// The log of this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The lines about the request with this id.
    fn lines(&self, request_id: &str) -> Vec<Value> {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["span"]["request.id"] == request_id).collect()
    }

    /// The line about the rejection of the request with this id.
    fn rejection(&self, request_id: &str) -> Value {
        let all = self.lines(request_id);
        let mut lines = all.iter().filter(|line| line["fields"]["reason"].is_string());
        let line = lines.next().unwrap_or_else(|| panic!("{request_id} is not in the log"));
        assert!(lines.next().is_none(), "{request_id} is in the log twice");
        let mut fields = line["fields"].clone();
        fields.as_object_mut().unwrap().remove("message");
        assert_eq!(line["level"], "INFO");
        fields
    }
}

/// A signing key and its public part as JSON.
fn signing_key() -> (EncodingKey, String) {
    let pair = Ed25519KeyPair::generate().unwrap();
    let private = EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref());
    let mut public = Jwk::from_encoding_key(&private, Algorithm::EdDSA).unwrap();
    public.common.key_id = Some("k1".to_owned());
    let public = serde_json::to_string(&public).unwrap();
    (private, public)
}

/// A token of a client of `acme`.
fn signed(private: &EncodingKey, client_id: &str, scope: &str) -> String {
    let now = Clock::system().now().timestamp();
    let claims = Claims {
        iss: "test".into(),
        sub: client_id.into(),
        aud: AUDIENCE.into(),
        client_id: client_id.into(),
        jti: client_id.into(),
        iat: now,
        exp: now + 60,
        scope: scope.parse().unwrap(),
        merchant: Some("acme".parse().unwrap()),
        sid: None,
    };
    let mut header = Header::new(Algorithm::EdDSA);
    header.typ = Some(TOKEN_TYPE.to_owned());
    header.kid = Some("k1".to_owned());
    jsonwebtoken::encode(&header, &claims, private).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rejections_are_logged_and_counted_with_their_client() {
    let log = Log::default();
    let writer = log.clone();
    tracing_subscriber::fmt().json().with_writer(move || writer.clone()).init();
    let (private, public) = signing_key();
    let console = start::<Console>(&[
        ("KEY", &public),
        ("HTTP__TRUSTED_PROXIES", "127.0.0.1"),
        ("LIMITS__REQUESTS_PER_MINUTE", "5"),
    ])
    .await
    .unwrap();
    let token = |client_id: &str, scope: &str| signed(&private, client_id, scope);
    let send = async |id: &str, token: Option<&str>| {
        let request = client().get(format!("{}/orders", console.url)).header("x-request-id", id);
        let request = request.header("x-forwarded-for", "192.0.2.7");
        let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
        request.send().await.unwrap().status().as_u16()
    };
    let revoked = token("revoked-client", "orders");
    assert_eq!(send("anonymous", None).await, 401);
    assert_eq!(send("garbage", Some("nonsense")).await, 401);
    assert_eq!(send("revoked", Some(&revoked)).await, 401);
    assert_eq!(send("denied", Some(&token("portal", "returns"))).await, 403);
    assert_eq!(send("good", Some(&token("shop", "orders"))).await, 200);
    assert_eq!(send("limited", Some(&token("shop", "orders"))).await, 429);
    let fields = |reason: &str, client: Option<&str>| {
        let mut fields = json!({
            "reason": reason, "remote_address": "192.0.2.7", "method": "GET", "route": "/orders",
        });
        if let Some(client) = client {
            fields["client_id"] = client.into();
            fields["merchant"] = "acme".into();
        }
        fields
    };
    assert_eq!(log.rejection("anonymous"), fields("missing_token", None));
    assert_eq!(log.rejection("garbage"), fields("invalid_token", None));
    assert_eq!(log.rejection("revoked"), fields("invalid_token", Some("revoked-client")));
    assert_eq!(log.rejection("denied"), fields("insufficient_scope", Some("portal")));
    assert_eq!(log.rejection("limited"), fields("rate_limited", None));
    let page = client().get(format!("{}/acme/page", console.url));
    let page = page.header("x-request-id", "shopper").header("x-forwarded-for", "192.0.2.8");
    assert_eq!(page.send().await.unwrap().status().as_u16(), 404);
    let [line] = &log.lines("shopper")[..] else { panic!("{:?}", log.lines("shopper")) };
    assert_eq!(line["span"]["merchant"], "acme", "the merchant in the path: {line}");
    let written = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(!written.contains(revoked.rsplit('.').next().unwrap()), "the log has a token");
    let metrics = client().get(format!("{}/metrics", console.url)).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for (reason, count) in
        [("missing_token", 1), ("invalid_token", 2), ("insufficient_scope", 1), ("rate_limited", 1)]
    {
        let sample = format!("backhaul_http_rejections_total{{reason=\"{reason}\"}} {count}");
        assert!(metrics.lines().any(|line| line == sample), "{sample}: {metrics}");
    }
    assert!(console.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_without_tables_has_neither_a_database_nor_a_broker() {
    let console = start::<Console>(&[]).await.unwrap();
    let ready = client().get(format!("{}/readyz", console.url)).send().await.unwrap();
    assert_eq!(ready.status().as_u16(), 200);
    let ready: Value = ready.json().await.unwrap();
    assert_eq!(ready["parts"], json!({ "keys": "ok", "revocations": "ok" }));
    assert!(console.stop().await);
    let url = [("DATABASE__URL", "postgres://nobody@127.0.0.1:1/nothing")];
    let error = start::<Console>(&url).await.err().unwrap().to_string();
    assert_eq!(error, "database.url is set, and console has no database; remove the setting");
    let error = start::<WithTables>(&[]).await.err().unwrap().to_string();
    assert_eq!(error, "database.url is empty, and console has tables");
}
