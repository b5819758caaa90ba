//! Responses: a JSON message, and the steps of a behaviour rule.

use std::convert::Infallible;
use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::time::Duration;

use actix_web::http::{StatusCode, header};
use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};
use futures_util::stream;
use serde_json::json;
use tokio::net::TcpSocket;

use crate::behaviour::{Action, Step};

/// A hanging request ends after this, so that a forgotten rule does not exhaust the machine.
const MAX_HANG: Duration = Duration::from_secs(600);

/// A second handle for the connection of a request.
pub(crate) struct ConnectionHandle(pub(crate) OwnedFd);

/// A response with a JSON object that has only a `message`.
pub(crate) fn message(status: StatusCode, text: &str) -> HttpResponse {
    HttpResponse::build(status).json(json!({"message": text}))
}

pub(crate) async fn run_step(step: Step, connection: Option<&ConnectionHandle>) -> HttpResponse {
    if step.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(step.delay_ms)).await;
    }
    match step.action {
        Action::Respond => respond(&step),
        Action::Hang => {
            tokio::time::sleep(MAX_HANG).await;
            close_connection()
        }
        Action::Drip => drip(&step),
        Action::Reset => {
            if let Some(connection) = connection {
                reset_on_close(connection).ok();
            }
            close_connection()
        }
        Action::Huge => huge(step.bytes.unwrap_or(1024 * 1024)),
        Action::Redirect => builder(step.status.unwrap_or(302))
            .insert_header((header::LOCATION, step.location.unwrap_or("/elsewhere".to_owned())))
            .finish(),
        Action::ExpireToken => HttpResponse::Unauthorized()
            .insert_header((header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\""))
            .json(json!({"message": "the token is expired"})),
    }
}

fn respond(step: &Step) -> HttpResponse {
    let status = step.status.unwrap_or(200);
    let mut response = builder(status);
    if let Some(retry_after) = &step.retry_after {
        response.insert_header((header::RETRY_AFTER, retry_after.as_str()));
    }
    match &step.body {
        Some(body) => response.json(body),
        None if matches!(status, 204 | 304) => response.finish(),
        None => response.json(json!({"message": format!("a rule responds with {status}")})),
    }
}

fn drip(step: &Step) -> HttpResponse {
    let interval = Duration::from_millis(step.every_ms.unwrap_or(1000));
    let bytes = step.bytes.unwrap_or(3600);
    let body = stream::unfold(bytes, move |left| async move {
        let left = left.checked_sub(1)?;
        tokio::time::sleep(interval).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b".")), left))
    });
    HttpResponse::Ok().streaming(body)
}

fn huge(bytes: usize) -> HttpResponse {
    static BLOCK: [u8; 16 * 1024] = [b'x'; 16 * 1024];
    let blocks = stream::unfold(bytes, |left| async move {
        let block = BLOCK.get(..left).unwrap_or(&BLOCK);
        let chunk = Bytes::from_static(block);
        (left > 0).then(|| (Ok::<_, Infallible>(chunk), left - block.len()))
    });
    HttpResponse::Ok().streaming(blocks)
}

/// A body that fails at once, so that the server closes the connection without a response.
fn close_connection() -> HttpResponse {
    let failing =
        stream::once(async { Err::<Bytes, _>(io::Error::other("a rule closes the connection")) });
    HttpResponse::Ok().streaming(failing)
}

/// Makes the following close send a TCP reset.
fn reset_on_close(connection: &ConnectionHandle) -> io::Result<()> {
    let stream = TcpStream::from(connection.0.try_clone()?);
    TcpSocket::from_std_stream(stream).set_zero_linger()
}

fn builder(status: u16) -> HttpResponseBuilder {
    HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::OK))
}
