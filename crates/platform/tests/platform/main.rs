//! Tests of the platform with a service that has no features of its own.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on should panic"
)]

mod authentication;
mod batching;
mod database;
mod rate_limits;
mod readers;
mod server;
mod slow_connections;
mod tls;
mod tokens;

use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use actix_web::{HttpRequest, HttpResponse, get, post, web};
use diesel_migrations::{EmbeddedMigrations, embed_migrations};
use domain::access::Scope;
use futures_util::stream;
use platform::{
    Clock, Problem, Process, Running, Service,
    database::Pool,
    http::{ClientIp, Json, ResponseProgress},
    idempotency::KeyHeader,
    identity::{Caller, Verifier},
    settings,
};
use serde::Deserialize;
use utoipa_actix_web::service_config::ServiceConfig;

/// A service that responds with the parts of a request.
pub(crate) struct EchoService {
    pool: Pool,
    slow_requests: AtomicUsize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    identity: Option<platform::identity::Settings>,
    /// Whether the list of revocations stays incomplete.
    without_revocations: Option<bool>,
}

impl Service for EchoService {
    const NAME: &'static str = "echo";
    const ABOUT: &'static str = "Responds with the parts of a request";
    const DEFAULTS: &'static [&'static str] = &[];
    type Settings = Settings;

    fn migrations() -> Vec<EmbeddedMigrations> {
        const TABLES: EmbeddedMigrations = embed_migrations!("../../migrations/messaging");
        vec![TABLES]
    }

    fn routes(config: &mut ServiceConfig<'_>) {
        config
            .service(echo)
            .service(respond_slowly)
            .service(block_worker)
            .service(respond_in_parts)
            .service(count_slow_requests)
            .service(query_database)
            .service(who)
            .service(list_orders)
            .service(create_order)
            .service(address);
    }

    fn start(process: &Process, settings: Settings) -> anyhow::Result<(Self, Arc<Verifier>)> {
        let issuer = settings.identity.as_ref().map_or("test", |identity| &identity.issuer);
        let verifier = Arc::new(Verifier::new(issuer, process.clock.clone()));
        if let Some(identity) = &settings.identity {
            verifier.start_refreshing_keys(identity, &process.tasks)?;
        }
        if settings.without_revocations != Some(true) {
            verifier.revocations().set_loaded();
        }
        Ok((Self { pool: process.pool.clone(), slow_requests: AtomicUsize::new(0) }, verifier))
    }
}

#[utoipa::path(request_body = String, responses((status = 200)))]
#[post("/echo")]
async fn echo(body: Json) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(body.read_with(|document| document.value().to_value()).await?))
}

#[utoipa::path(responses((status = 200)))]
#[get("/slow/{millis}")]
async fn respond_slowly(service: web::Data<EchoService>, millis: web::Path<u64>) -> HttpResponse {
    service.slow_requests.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(*millis)).await;
    HttpResponse::Ok().json("waited")
}

/// Sends a response in parts, with a pause before each.
#[utoipa::path(responses((status = 200)))]
#[get("/parts/{number}")]
async fn respond_in_parts(number: web::Path<usize>, head: HttpRequest) -> HttpResponse {
    let progress = ResponseProgress::of(&head);
    let parts = stream::unfold(number.into_inner(), move |left| {
        let progress = progress.clone();
        async move {
            let left = left.checked_sub(1)?;
            tokio::time::sleep(Duration::from_millis(200)).await;
            progress.made();
            Some((Ok::<_, Infallible>(web::Bytes::from_static(b".")), left))
        }
    });
    HttpResponse::Ok().streaming(parts)
}

/// Requests that keep their worker busy.
pub(crate) static BLOCKING_REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// Keeps its worker busy, as a long computation would.
#[utoipa::path(responses((status = 200)))]
#[get("/block/{millis}")]
async fn block_worker(millis: web::Path<u64>) -> HttpResponse {
    BLOCKING_REQUESTS.fetch_add(1, Ordering::Relaxed);
    #[expect(clippy::disallowed_methods, reason = "the worker is busy on purpose")]
    std::thread::sleep(Duration::from_millis(*millis));
    HttpResponse::Ok().json("blocked")
}

#[utoipa::path(responses((status = 200)))]
#[get("/slow_requests")]
async fn count_slow_requests(service: web::Data<EchoService>) -> HttpResponse {
    HttpResponse::Ok().json(service.slow_requests.load(Ordering::Relaxed))
}

#[utoipa::path(responses((status = 200)))]
#[get("/database")]
async fn query_database(service: web::Data<EchoService>) -> Result<HttpResponse, Problem> {
    service.pool.ping().await?;
    Ok(HttpResponse::Ok().json("there"))
}

#[utoipa::path(security(("bearer" = ["orders"])), responses((status = 200)))]
#[get("/orders")]
async fn list_orders(caller: Caller) -> Result<HttpResponse, Problem> {
    caller.require(Scope::Orders)?;
    Ok(HttpResponse::Ok().json(["order"]))
}

/// Its headers are extracted before the caller, as the order of the arguments says.
#[utoipa::path(security(("bearer" = ["orders"])), request_body = String, responses((status = 200)))]
#[post("/orders")]
async fn create_order(_: KeyHeader, body: Json, _: Caller) -> Result<HttpResponse, Problem> {
    Ok(HttpResponse::Ok().json(body.read_with(|document| document.value().to_value()).await?))
}

#[utoipa::path(security(("bearer" = [])), responses((status = 200)))]
#[get("/who")]
async fn who(caller: Caller) -> HttpResponse {
    HttpResponse::Ok().json(&caller.claims.client_id)
}

#[utoipa::path(responses((status = 200)))]
#[get("/address")]
async fn address(ClientIp(address): ClientIp) -> HttpResponse {
    HttpResponse::Ok().json(address)
}

/// Starts the service. Most of its operations need no database.
pub(crate) async fn start(settings: &[(&str, &str)]) -> Running {
    try_start(settings).await.unwrap()
}

pub(crate) async fn try_start(settings: &[(&str, &str)]) -> anyhow::Result<Running> {
    let basics =
        [("DATABASE__URL", "postgres://nobody@127.0.0.1:1/nothing"), ("HTTP__WORKERS", "1")];
    let environment: HashMap<_, _> = basics
        .iter()
        .chain(settings)
        .map(|(key, value)| (format!("ECHO__{key}"), (*value).to_owned()))
        .collect();
    let (platform, own) = settings::load(EchoService::NAME, &[], None, environment).unwrap();
    Running::start::<EchoService>(platform, own, Clock::system()).await
}

pub(crate) fn client() -> reqwest::Client {
    platform::http_client(Duration::from_secs(300)).unwrap()
}
