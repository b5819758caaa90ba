//! The HTTP server around a service's routes.

use std::future::ready;
use std::{
    net::{SocketAddr, TcpListener, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use actix_web::{
    App, HttpRequest, HttpResponse, HttpServer, ResponseError, dev::Server, http::header,
    middleware::from_fn, web,
};
use anyhow::Context as _;
use serde_json::json;
use utoipa::openapi::OpenApi;
use utoipa_actix_web::{AppExt as _, service_config::ServiceConfig};

use super::{
    BodyLimits, ErrorBody, Settings,
    body_limits::SMALL_BODY_BYTES,
    connections::Connections,
    memory::HttpMemory,
    middleware::observe,
    operations::Operations,
    request_error::{BadQuery, NoSuchPath},
    tls,
};
use crate::{
    Problem, Tasks,
    health::{self, Health},
    identity::Verifier,
    limits::PerAddress,
    request_id::request_id,
    telemetry,
    version::{COMMIT, VERSION},
};

/// Time for requests in flight to finish after the server starts to stop.
const DRAIN_SECONDS: u64 = 15;

/// A server that listens; it serves while it is polled.
pub(crate) struct Bound {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
    pub(crate) scheme: &'static str,
}

/// Adds the state of a service to the server.
pub(crate) type Share = Arc<dyn Fn(&mut web::ServiceConfig) + Send + Sync>;

/// The operations of a service.
pub(crate) struct Routes {
    pub(crate) service: &'static str,
    pub(crate) document: OpenApi,
    pub(crate) configure: fn(&mut ServiceConfig<'_>),
    pub(crate) share: Share,
}

/// The state that middleware and extractors use.
pub(crate) struct ServerState {
    pub(crate) limits: Arc<PerAddress>,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) health: Health,
}

/// Listens, and is ready to serve the routes of a service.
pub(crate) fn bind(
    settings: &Settings,
    routes: Routes,
    state: ServerState,
    tasks: &Tasks,
) -> anyhow::Result<Bound> {
    let Routes { service, document, configure, share } = routes;
    let ServerState { limits, verifier, health } = state;
    let listener = listen(settings)?;
    let address = listener.local_addr()?;
    let workers = if settings.workers == 0 { cores() } else { settings.workers };
    let document = web::Data::new(document);
    let operations = web::Data::new(Operations::new(&document));
    let connections = Connections::start(settings, limits.clone(), tasks);
    let verifier = web::Data::from(verifier);
    let http_settings = web::Data::new(settings.clone());
    let body_limits = body_limits(settings, &document);
    let limits = web::Data::from(limits);
    let memory = web::Data::new(HttpMemory::new(settings.max_inflight_bytes, body_limits));
    let factory = move || {
        App::new()
            .wrap(from_fn(observe))
            .into_utoipa_app()
            .app_data(verifier.clone())
            .app_data(web::Data::new(health.clone()))
            .app_data(http_settings.clone())
            .app_data(body_limits)
            .app_data(limits.clone())
            .app_data(memory.clone())
            .app_data(document.clone())
            .app_data(operations.clone())
            .app_data(
                web::QueryConfig::default()
                    .error_handler(|e, _| Problem::from(BadQuery(e.to_string())).into()),
            )
            .app_data(
                web::PathConfig::default().error_handler(|_, _| Problem::from(NoSuchPath).into()),
            )
            .configure(configure)
            .into_app()
            .route("/healthz", web::get().to(health::healthz))
            .route("/readyz", web::get().to(health::readyz))
            .route("/metrics", web::get().to(telemetry::metrics))
            .route("/version", web::get().to(move || ready(show_version(service))))
            .route("/openapi.json", web::get().to(openapi_json))
            // Last, because web pages have a fallback for all other paths.
            .configure(|app| share(app))
            .default_service(web::to(not_found))
    };
    let server = HttpServer::new(factory)
        .disable_signals()
        .workers(workers)
        .on_connect(move |io, data| connections.add(io, data))
        .keep_alive(settings.keep_alive)
        // The time-out of actix-web counts the time in which a busy worker does not read.
        .client_request_timeout(Duration::ZERO)
        .client_disconnect_timeout(Duration::from_secs(2))
        // Compressed responses are written in two pieces. Without this, the second one waits for the client to
        // acknowledge the first, which takes 40 ms on Linux.
        .tcp_nodelay(true)
        // The limit of actix-web is per worker.
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

/// The forms of pages may be as large as any body: pages are no operations, and nobody has a token.
fn body_limits(settings: &Settings, document: &OpenApi) -> BodyLimits {
    let max_bytes = settings.max_body_bytes;
    let has_operations = !document.paths.paths.is_empty();
    let max_public_bytes = if has_operations { SMALL_BODY_BYTES.min(max_bytes) } else { max_bytes };
    BodyLimits { max_bytes, max_public_bytes, timeout: settings.body_timeout }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Whether a server can listen with these settings, except that the port may be in use.
pub(crate) fn check(settings: &Settings) -> anyhow::Result<()> {
    let host_and_port = (settings.host.as_str(), settings.port);
    for address in
        host_and_port.to_socket_addrs().with_context(|| format!("http.host {}", settings.host))?
    {
        reject_plain_http(settings, address)?;
    }
    settings.tls.as_ref().map_or(Ok(()), tls::check)
}

fn listen(settings: &Settings) -> anyhow::Result<TcpListener> {
    let listener =
        TcpListener::bind((settings.host.as_str(), settings.port)).with_context(|| {
            format!("cannot listen on {}:{} (http.host, http.port)", settings.host, settings.port)
        })?;
    reject_plain_http(settings, listener.local_addr()?)?;
    Ok(listener)
}

/// Plain HTTP listens on loopback only, unless TLS ends in front of the process.
fn reject_plain_http(settings: &Settings, address: SocketAddr) -> anyhow::Result<()> {
    let is_public = !address.ip().is_loopback();
    anyhow::ensure!(
        !is_public || settings.tls.is_some() || settings.behind_tls_proxy,
        "http.host {:?} is reachable from outside and http.tls is not set: \
         configure a certificate, or set http.behind_tls_proxy if TLS ends in front of this process",
        settings.host
    );
    Ok(())
}

/// `GET /version`
fn show_version(name: &'static str) -> HttpResponse {
    let body = json!({ "service": name, "version": VERSION, "commit": COMMIT });
    HttpResponse::Ok().json(body)
}

async fn openapi_json(document: web::Data<OpenApi>) -> HttpResponse {
    HttpResponse::Ok().json(document.get_ref())
}

/// 404, or 405 with the methods of this path.
async fn not_found(request: HttpRequest, operations: web::Data<Operations>) -> HttpResponse {
    let Some(allowed) = operations.allowed_methods(request.path()) else {
        return Problem::from(NoSuchPath).error_response();
    };
    let allowed = allowed.join(", ");
    let message = format!("this path allows the methods {allowed}");
    HttpResponse::MethodNotAllowed().insert_header((header::ALLOW, allowed)).json(ErrorBody {
        message,
        code: None,
        errors: Vec::new(),
        request_id: request_id(),
    })
}
