//! An SMTP server (RFC 5321) that accepts every mail. It knows neither TLS nor credentials.

use std::io;

use actix_web::web;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::Sandbox;

const MAX_LINE_BYTES: u64 = 64 * 1024;
const MAX_MAIL_BYTES: usize = 4 * 1024 * 1024;
const MAX_RECIPIENTS: usize = 100;

/// Accepts connections until the thread ends.
pub(super) async fn listen(listener: TcpListener, sandbox: web::Data<Sandbox>) {
    while let Ok((stream, _)) = listener.accept().await {
        let sandbox = sandbox.clone();
        actix_web::rt::spawn(async move {
            // A client that closes the connection ends it.
            serve(stream, &sandbox).await.ok();
        });
    }
}

async fn serve(stream: TcpStream, sandbox: &Sandbox) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut to = Vec::new();
    respond(&mut stream, "220 sandbox ESMTP").await?;
    while let Some(line) = read_line(&mut stream).await? {
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let command = line.split(' ').next().unwrap_or_default().to_ascii_uppercase();
        let response = match command.as_str() {
            "EHLO" => "250-sandbox\r\n250-8BITMIME\r\n250 SMTPUTF8",
            "HELO" | "NOOP" => "250 ok",
            "MAIL" | "RSET" => {
                to.clear();
                "250 ok"
            }
            "RCPT" if to.len() >= MAX_RECIPIENTS => "452 too many recipients",
            "RCPT" => {
                to.push(recipient(&line));
                "250 ok"
            }
            "DATA" if to.is_empty() => "503 no recipient",
            "DATA" => {
                respond(&mut stream, "354 end with a line that has only a dot").await?;
                match read_mail(&mut stream).await? {
                    Some(mail) => {
                        let now = sandbox.clock.now();
                        sandbox.inbox.add(std::mem::take(&mut to), &mail, now);
                        "250 2.0.0 in the inbox of the sandbox"
                    }
                    None => "552 5.3.4 too large",
                }
            }
            "QUIT" => return respond(&mut stream, "221 bye").await,
            _ => "502 unknown command",
        };
        respond(&mut stream, response).await?;
    }
    Ok(())
}

async fn respond(stream: &mut BufReader<TcpStream>, response: &str) -> io::Result<()> {
    stream.write_all(format!("{response}\r\n").as_bytes()).await
}

/// The address in `RCPT TO:<address>`.
fn recipient(line: &str) -> String {
    let address = line.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    address.map_or_else(String::new, |(address, _)| address.to_owned())
}

/// A line with its end; `None` at the end of the connection.
async fn read_line(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let read = stream.take(MAX_LINE_BYTES).read_until(b'\n', &mut line).await?;
    Ok((read > 0).then_some(line))
}

/// Reads a mail until the line with only a dot. `None` if it is too large.
async fn read_mail(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Vec<u8>>> {
    let mut mail = Vec::new();
    let mut is_too_large = false;
    loop {
        let Some(line) = read_line(stream).await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if line == b".\r\n" {
            return Ok((!is_too_large).then_some(mail));
        }
        // A line that begins with a dot has another one before it.
        let line = line.strip_prefix(b".").unwrap_or(&line);
        is_too_large |= mail.len() + line.len() > MAX_MAIL_BYTES;
        if !is_too_large {
            mail.extend_from_slice(line);
        }
    }
}
