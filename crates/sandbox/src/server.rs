//! The server around the sandbox: in a process of its own, or inside a test.

use std::any::Any;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread::JoinHandle;

use actix_web::dev::{Extensions, Server, ServerHandle};
use actix_web::rt::{System, net::TcpStream};
use actix_web::{App, HttpServer, web};
use anyhow::Context;
use platform::Clock;

use crate::reply::Line;
use crate::settings::Settings;
use crate::{Sandbox, control, merchant};

const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// Requests that hang on purpose are not waited for longer than this.
const DRAIN_SECONDS: u64 = 1;

/// Serves until SIGTERM or SIGINT.
pub fn serve(settings: &Settings) -> anyhow::Result<()> {
    let sandbox = web::Data::new(Sandbox::new(settings, Clock::system())?);
    System::new().block_on(async {
        let (server, address) = bind(settings, sandbox, Signals::Obeyed)?;
        #[expect(clippy::print_stdout, reason = "a port that was not chosen must be told")]
        {
            println!("the sandbox merchant listens on http://{address}");
        }
        server.await.context("the server failed")
    })
}

/// Asks the sandbox with these settings whether it lives.
pub fn ask(settings: &Settings) -> anyhow::Result<()> {
    let host = settings.http.host.to_string();
    System::new().block_on(platform::health::alive(&host, settings.http.port, false))
}

/// Starts a sandbox in a thread of its own.
pub fn start(settings: &Settings) -> anyhow::Result<Running> {
    let sandbox = web::Data::new(Sandbox::new(settings, Clock::system())?);
    let settings = settings.clone();
    let (tell, told) = mpsc::channel();
    let thread = std::thread::Builder::new().name("sandbox".to_owned()).spawn(move || {
        System::new().block_on(async {
            let server = match bind(&settings, sandbox, Signals::Ignored) {
                Ok((server, address)) => {
                    tell.send(Ok((server.handle(), address))).ok();
                    server
                }
                Err(error) => {
                    tell.send(Err(error)).ok();
                    return;
                }
            };
            server.await.ok();
        });
    })?;
    let (handle, address) = told.recv().context("the sandbox died at birth")??;
    Ok(Running { address, handle, thread: Some(thread) })
}

/// A sandbox inside this process; it ends when this is dropped.
pub struct Running {
    pub address: SocketAddr,
    handle: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// The address of a path, for example `http://127.0.0.1:40123/rmas`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The command is on its way when `stop` returns; the future only waits for its effect.
        drop(self.handle.stop(false));
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[derive(Clone, Copy)]
enum Signals {
    Obeyed,
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
            .app_data(web::PayloadConfig::new(BODY_LIMIT))
            .app_data(control::json_of_any_type())
            .app_data(web::QueryConfig::default().error_handler(control::bad_query))
            .configure(control::routes)
            .default_service(web::to(merchant::answer))
    };
    let mut server = HttpServer::new(factory)
        .workers(http.workers)
        .on_connect(keep_line)
        .shutdown_timeout(DRAIN_SECONDS);
    if matches!(signals, Signals::Ignored) {
        server = server.disable_signals();
    }
    Ok((server.listen(listener)?.run(), address))
}

/// Keeps a second handle on every connection, so that one can be reset.
fn keep_line(connection: &dyn Any, extensions: &mut Extensions) {
    let line = connection.downcast_ref::<TcpStream>().map(|stream| stream.as_fd());
    if let Some(Ok(line)) = line.map(|line| line.try_clone_to_owned()) {
        extensions.insert(Line(line));
    }
}
