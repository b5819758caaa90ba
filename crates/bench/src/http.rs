//! HTTP/1.1 on a socket, with little CPU time: the load generator and the receiver share the cores with the
//! services that they measure.

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A request or a response. Both have a `content-length`, or no body.
pub(crate) struct Message {
    head: String,
    pub(crate) body: Vec<u8>,
}

/// A connection that carries one message after the other.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that were read beyond the last message.
    buffer: Vec<u8>,
}

/// The bytes of a request with a JSON body, or of a GET request.
pub(crate) fn request(address: &str, path: &str, token: &str, body: Option<&str>) -> Vec<u8> {
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.unwrap_or_default();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         api-version: 3\r\naccept: application/json\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next message; `None` if the other side closed the connection.
    pub(crate) async fn read(&mut self) -> anyhow::Result<Option<Message>> {
        loop {
            if let Some((message, end)) = first_message(&self.buffer)? {
                self.buffer.drain(..end);
                return Ok(Some(message));
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits until the other side closes the connection.
    pub(crate) async fn closed(&mut self) -> anyhow::Result<()> {
        while self.stream.read_buf(&mut self.buffer).await? > 0 {}
        Ok(())
    }
}

impl Message {
    /// The request line or the status line.
    pub(crate) fn first_line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    /// The value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// The first message of the buffer and its length, once it is complete.
fn first_message(buffer: &[u8]) -> anyhow::Result<Option<(Message, usize)>> {
    let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = buffer.get(..end).and_then(|head| str::from_utf8(head).ok());
    let head = head.context("the head of a message is not text")?;
    let length = header(head, "content-length").map_or(Ok(0), str::parse::<usize>)?;
    let body = buffer.get(end + 4..end + 4 + length);
    Ok(body.map(|body| (Message { head: head.to_owned(), body: body.to_vec() }, end + 4 + length)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_complete_with_its_body() {
        let bytes = b"POST /rmas HTTP/1.1\r\nWebhook-Id: m1\r\nContent-Length: 2\r\n\r\n{}GET";
        let (message, end) = first_message(bytes).unwrap().unwrap();
        assert_eq!(message.first_line(), "POST /rmas HTTP/1.1");
        assert_eq!(message.header("webhook-id"), Some("m1"));
        assert_eq!(message.body, b"{}");
        assert_eq!(bytes.get(end..), Some(&b"GET"[..]));
        assert!(first_message(&bytes[..bytes.len() - 4]).unwrap().is_none());
        assert!(first_message(b"GET / HTTP/1.1\r\n").unwrap().is_none());
    }
}
