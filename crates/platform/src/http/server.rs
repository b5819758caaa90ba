//! The HTTP server around a service's routes.

use std::{
    net::{SocketAddr, TcpListener, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer, ResponseError,
    dev::{ResourceDef, Server},
    http::header,
    middleware::from_fn,
    web,
};
use anyhow::Context as _;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::AppExt as _;

use super::{Settings, connections::IdleConnections, memory::HttpMemory, middleware::observe, tls};
use crate::{
    ErrorKind, Failure, Problem, Service, Tasks,
    health::{self, Health},
    identity::Verifier,
    limits::PerAddress,
    telemetry,
};

/// Time for requests in flight to finish after the server is told to stop.
const DRAIN_SECONDS: u64 = 15;

/// A server that listens; it serves while it is polled.
pub(crate) struct Bound {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) scheme: &'static str,
}

/// Listens, and is ready to serve the routes of `S`.
pub(crate) fn bind<S: Service>(
    settings: &Settings,
    door: Arc<PerAddress>,
    service: Arc<S>,
    verifier: Arc<Verifier>,
    health: Health,
    tasks: &Tasks,
) -> anyhow::Result<Bound> {
    let listener = listen(settings)?;
    let address = listener.local_addr()?;
    let document = Arc::new(crate::openapi::<S>());
    let (service, verifier) = (web::Data::from(service), web::Data::from(verifier));
    let (health, bounds) = (web::Data::new(health), web::Data::new(settings.clone()));
    let (door, memory) = (web::Data::from(door), web::Data::new(HttpMemory::new(settings)));
    let factory = move || {
        App::new()
            .wrap(from_fn(observe))
            .into_utoipa_app()
            .app_data(service.clone())
            .app_data(verifier.clone())
            .app_data(health.clone())
            .app_data(bounds.clone())
            .app_data(door.clone())
            .app_data(memory.clone())
            .app_data(web::Data::from(document.clone()))
            .app_data(
                web::QueryConfig::default()
                    .error_handler(|e, _| Problem::from(BadQuery(e.to_string())).into()),
            )
            .app_data(
                web::PathConfig::default().error_handler(|_, _| Problem::from(NoSuchPath).into()),
            )
            .configure(S::routes)
            .into_app()
            .configure(|app| service.share(app))
            .route("/healthz", web::get().to(health::healthz))
            .route("/readyz", web::get().to(health::readyz))
            .route("/metrics", web::get().to(telemetry::metrics))
            .route("/openapi.json", web::get().to(openapi_json))
            .default_service(web::to(nothing_here))
    };
    let lines = IdleConnections::start(settings.keep_alive + settings.header_timeout, tasks);
    let workers = if settings.workers == 0 { cores() } else { settings.workers };
    let server = HttpServer::new(factory)
        .disable_signals()
        .workers(workers)
        .on_connect(move |io, data| lines.add(io, data))
        .keep_alive(settings.keep_alive)
        .client_request_timeout(settings.header_timeout)
        .client_disconnect_timeout(Duration::from_secs(2))
        // The library counts by worker.
        .max_connections(settings.max_connections.div_ceil(workers))
        .shutdown_timeout(DRAIN_SECONDS);
    let (server, scheme) = match &settings.tls {
        Some(files) => {
            (server.listen_rustls_0_23(listener, tls::server_config(files, tasks)?)?, "https")
        }
        None => (server.listen(listener)?, "http"),
    };
    Ok(Bound { server: server.run(), address, scheme })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Whether a server could be bound with these settings, but for the port being free.
pub(crate) fn check(settings: &Settings) -> anyhow::Result<()> {
    let place = (settings.host.as_str(), settings.port);
    for address in
        place.to_socket_addrs().with_context(|| format!("http.host {}", settings.host))?
    {
        refuse_bare(settings, address)?;
    }
    settings.tls.as_ref().map_or(Ok(()), tls::check)
}

fn listen(settings: &Settings) -> anyhow::Result<TcpListener> {
    let place = (settings.host.as_str(), settings.port);
    let listener = TcpListener::bind(place).with_context(|| {
        format!("cannot listen on {}:{} (http.host, http.port)", settings.host, settings.port)
    })?;
    refuse_bare(settings, listener.local_addr()?)?;
    Ok(listener)
}

/// Plain HTTP stays on loopback, unless told otherwise.
fn refuse_bare(settings: &Settings, address: SocketAddr) -> anyhow::Result<()> {
    let open = !address.ip().is_loopback();
    anyhow::ensure!(
        !open || settings.tls.is_some() || settings.behind_tls_proxy,
        "http.host = {:?} is reachable from outside and http.tls is not set: \
         configure a certificate, or set http.behind_tls_proxy if TLS ends in front of this process",
        settings.host
    );
    Ok(())
}

async fn openapi_json(document: web::Data<OpenApi>) -> HttpResponse {
    HttpResponse::Ok().json(document.get_ref())
}

#[derive(Debug, thiserror::Error)]
#[error("query: {0}")]
pub(super) struct BadQuery(pub(super) String);

impl Failure for BadQuery {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Malformed
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there is nothing at this path; /openapi.json lists what there is")]
pub(super) struct NoSuchPath;

impl Failure for NoSuchPath {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Missing
    }
}

/// 404, or 405 with the methods that do exist at this path.
async fn nothing_here(request: HttpRequest, document: web::Data<OpenApi>) -> HttpResponse {
    let here = document
        .paths
        .paths
        .iter()
        .find(|(path, _)| ResourceDef::new(path.as_str()).is_match(request.path()));
    let Some((_, item)) = here else {
        return Problem::from(NoSuchPath).error_response();
    };
    let methods = [
        ("GET", &item.get),
        ("POST", &item.post),
        ("PUT", &item.put),
        ("PATCH", &item.patch),
        ("DELETE", &item.delete),
    ];
    let allowed: Vec<_> =
        methods.into_iter().filter(|(_, there)| there.is_some()).map(|(name, _)| name).collect();
    let message = format!("{} is not possible here, only {}", request.method(), allowed.join(", "));
    HttpResponse::MethodNotAllowed()
        .insert_header((header::ALLOW, allowed.join(", ")))
        .json(super::ErrorBody { message, errors: Vec::new(), request_id: super::request_id() })
}
