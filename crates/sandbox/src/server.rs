//! The HTTP server of the sandbox, in a process of its own or inside a test.

use std::any::Any;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use actix_web::dev::{Extensions, Server, ServerHandle};
use actix_web::rt::{System, net::TcpStream};
use actix_web::{App, HttpServer, web};
use anyhow::Context;
use platform::{Clock, http::BodyLimits};

use crate::response::ConnectionHandle;
use crate::settings::Settings;
use crate::{Sandbox, catalogue, control, mails, merchant};

const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// Limits the wait for requests that hang on purpose.
const DRAIN_SECONDS: u64 = 1;

/// Serves until SIGTERM or SIGINT.
pub fn serve(settings: &Settings) -> anyhow::Result<()> {
    let sandbox = web::Data::new(Sandbox::new(settings, Clock::system())?);
    System::new().block_on(async {
        let mails = mails::start(&settings.mail, settings.http.host, &sandbox)?;
        let (server, address) = bind(settings, sandbox, Signals::Handled)?;
        #[expect(clippy::print_stdout, reason = "the port may be chosen by the system")]
        {
            println!("the sandbox merchant listens on http://{address}");
            if let Some(address) = mails {
                println!("it accepts mails at smtp://{address}");
            }
        }
        server.await.context("the server failed")
    })
}

/// Checks the health of a running sandbox with these settings.
pub fn check_health(settings: &Settings) -> anyhow::Result<()> {
    let host = settings.http.host.to_string();
    System::new().block_on(platform::health::alive(&host, settings.http.port, false))
}

/// Starts a sandbox on a thread of its own.
pub fn start(settings: &Settings) -> anyhow::Result<Running> {
    let sandbox = web::Data::new(Sandbox::new(settings, Clock::system())?);
    let settings = settings.clone();
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("sandbox".to_owned()).spawn(move || {
        System::new().block_on(async {
            let mails = mails::start(&settings.mail, settings.http.host, &sandbox);
            let bound = bind(&settings, sandbox, Signals::Ignored);
            let server = match mails.and_then(|mails| Ok((bound?, mails))) {
                Ok(((server, address), mails)) => {
                    sender.send(Ok((server.handle(), address, mails))).ok();
                    server
                }
                Err(error) => {
                    sender.send(Err(error)).ok();
                    return;
                }
            };
            server.await.ok();
        });
    })?;
    let (handle, address, mail_address) =
        receiver.recv().context("the sandbox did not start")??;
    Ok(Running { address, mail_address, handle, thread: Some(thread) })
}

/// A sandbox inside this process, stopped on drop.
pub struct Running {
    pub address: SocketAddr,
    /// The address of the SMTP server, if mails are enabled.
    pub mail_address: Option<SocketAddr>,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// The URL of a path, for example `http://127.0.0.1:40123/rmas`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // `stop` sends the command at once; its future only waits for the server to stop.
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[derive(Clone, Copy)]
enum Signals {
    Handled,
    Ignored,
}

fn bind(
    settings: &Settings,
    sandbox: web::Data<Sandbox>,
    signals: Signals,
) -> anyhow::Result<(Server, SocketAddr)> {
    let http = &settings.http;
    let listener = TcpListener::bind((http.host, http.port))
        .with_context(|| format!("cannot listen on {}:{}", http.host, http.port))?;
    let address = listener.local_addr()?;
    let factory = move || {
        App::new()
            .app_data(sandbox.clone())
            .app_data(BodyLimits {
                max_bytes: BODY_LIMIT,
                max_public_bytes: BODY_LIMIT,
                ..BodyLimits::default()
            })
            .app_data(web::QueryConfig::default().error_handler(control::invalid_query))
            .configure(control::routes)
            .configure(catalogue::routes)
            .configure(mails::routes)
            .default_service(web::to(merchant::respond))
    };
    let mut server = HttpServer::new(factory)
        .workers(http.workers)
        .on_connect(store_handle)
        // A busy machine may read a request late, and a merchant would not reject it for that.
        .client_request_timeout(Duration::ZERO)
        .shutdown_timeout(DRAIN_SECONDS);
    if matches!(signals, Signals::Ignored) {
        server = server.disable_signals();
    }
    Ok((server.listen(listener)?.run(), address))
}

/// Stores a second handle for every connection, so that a step can reset it.
fn store_handle(connection: &dyn Any, extensions: &mut Extensions) {
    let stream = connection.downcast_ref::<TcpStream>();
    if let Some(Ok(handle)) = stream.map(|stream| stream.as_fd().try_clone_to_owned()) {
        extensions.insert(ConnectionHandle(handle));
    }
}
