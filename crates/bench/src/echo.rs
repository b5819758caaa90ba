//! The baseline of token requests: an actix-web server that echoes JSON.

use actix_web::{App, HttpResponse, HttpServer, web};
use serde::{Deserialize, Serialize};

use crate::process::{Program, free_port};

#[derive(Serialize, Deserialize)]
struct Message {
    grant_type: String,
    client_id: String,
    client_secret: String,
}

async fn echo(message: web::Json<Message>) -> HttpResponse {
    HttpResponse::Ok().json(message.into_inner())
}

/// Serves on the port in `ECHO_PORT` until killed.
pub(crate) async fn serve() -> anyhow::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the only setting of the baseline")]
    let port: u16 = std::env::var("ECHO_PORT")?.parse()?;
    let app = || {
        App::new().route("/", web::get().to(HttpResponse::Ok)).route("/echo", web::post().to(echo))
    };
    HttpServer::new(app).bind(("127.0.0.1", port))?.run().await?;
    Ok(())
}

pub(crate) async fn start() -> anyhow::Result<Program> {
    let port = free_port()?;
    Program::start("bench", &["echo"], &[("ECHO_PORT", &port.to_string())], port, "/").await
}
