//! Answers no merchant should give.

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

use crate::behaviour::{Act, Step};

/// A hanging request is let go after this, so that a forgotten rule does not fill the machine.
const LONGEST_HANG: Duration = Duration::from_secs(600);

/// A second handle on the connection a request came by.
pub(crate) struct Line(pub(crate) OwnedFd);

pub(crate) async fn misbehave(step: Step, line: Option<&Line>) -> HttpResponse {
    if step.delay_ms > 0 {
        tokio::time::sleep(Duration::from_millis(step.delay_ms)).await;
    }
    match step.act {
        Act::Answer => answer(&step),
        Act::Hang => {
            tokio::time::sleep(LONGEST_HANG).await;
            hang_up()
        }
        Act::Drip => drip(&step),
        Act::Reset => {
            if let Some(line) = line {
                reset_on_close(line).ok();
            }
            hang_up()
        }
        Act::Huge => huge(step.bytes.unwrap_or(1024 * 1024)),
        Act::Redirect => builder(step.status.unwrap_or(302))
            .insert_header((header::LOCATION, step.location.unwrap_or("/elsewhere".to_owned())))
            .finish(),
        Act::ExpireToken => HttpResponse::Unauthorized()
            .insert_header((header::WWW_AUTHENTICATE, "Bearer error=\"invalid_token\""))
            .json(json!({"message": "the token is no longer valid"})),
    }
}

fn answer(step: &Step) -> HttpResponse {
    let status = step.status.unwrap_or(200);
    let mut answer = builder(status);
    if let Some(retry_after) = &step.retry_after {
        answer.insert_header((header::RETRY_AFTER, retry_after.as_str()));
    }
    match &step.body {
        Some(body) => answer.json(body),
        None if matches!(status, 204 | 304) => answer.finish(),
        None => answer.json(json!({"message": format!("told to answer {status}")})),
    }
}

fn drip(step: &Step) -> HttpResponse {
    let every = Duration::from_millis(step.every_ms.unwrap_or(1000));
    let bytes = step.bytes.unwrap_or(3600);
    let drops = stream::unfold(bytes, move |left| async move {
        let left = left.checked_sub(1)?;
        tokio::time::sleep(every).await;
        Some((Ok::<_, Infallible>(Bytes::from_static(b".")), left))
    });
    HttpResponse::Ok().streaming(drops)
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

/// A body that fails at once: the server closes the connection before it has written anything.
fn hang_up() -> HttpResponse {
    let failing = stream::once(async { Err::<Bytes, _>(io::Error::other("told to hang up")) });
    HttpResponse::Ok().streaming(failing)
}

/// Makes the close that follows a reset instead of a farewell.
fn reset_on_close(line: &Line) -> io::Result<()> {
    let stream = TcpStream::from(line.0.try_clone()?);
    TcpSocket::from_std_stream(stream).set_zero_linger()
}

fn builder(status: u16) -> HttpResponseBuilder {
    HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::OK))
}
