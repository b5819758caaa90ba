//! Forms that fill memory or do not arrive, for processes with pages.

use std::io::Write as _;
use std::time::Duration;

use flate2::{Compression, write::GzEncoder};
use reqwest::{StatusCode, header};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Replica;

const TIMEOUT: Duration = Duration::from_secs(300);
const MEMORY_LIMIT_KIB: u64 = 128 * 1024;
/// Requests at once.
const SENDERS: usize = 6;
/// Forms that do not arrive.
const UNFINISHED_FORMS: usize = 3;

/// Checks that compressed forms to these paths take no memory. Nobody is signed in. A form is too large, or refused
/// unread while others fill the budget for bodies.
pub async fn check_compressed_forms(replica: &Replica, paths: &[&str]) {
    let form = gzipped_letters(96);
    let client = platform::http_client(TIMEOUT).unwrap();
    let mut sending = tokio::task::JoinSet::new();
    for path in paths.iter().flat_map(|path| [path; SENDERS]) {
        let request = client
            .post(format!("{}{path}", replica.url))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::CONTENT_ENCODING, "gzip")
            .body(form.clone());
        sending.spawn(request.send());
    }
    for response in sending.join_all().await {
        let status = response.unwrap().status();
        let refused = [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::TOO_MANY_REQUESTS];
        assert!(refused.contains(&status), "{status}");
    }
    let peak = replica.peak_memory_kib();
    assert!(peak < MEMORY_LIMIT_KIB, "{peak} KiB");
}

/// Checks that a form whose body does not arrive gets 408.
pub async fn check_slow_form(replica: &Replica, path: &str) {
    let address = replica.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let start = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 9\r\n\r\na=");
    stream.write_all(start.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    let read = tokio::time::timeout(TIMEOUT, stream.read_exact(&mut status)).await;
    read.expect("the form is still awaited").unwrap();
    assert_eq!(String::from_utf8_lossy(&status), "HTTP/1.1 408");
}

/// Checks that forms of which only a byte arrives leave memory for a form to the same path, in a process with memory
/// for one form of the largest size. Nobody is signed in.
pub async fn check_unfinished_forms(replica: &Replica, path: &str) {
    let address = replica.url.strip_prefix("http://").unwrap();
    let mut waiting = Vec::new();
    for _ in 0..UNFINISHED_FORMS {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Its length is not known, so it could be the largest.
        let start = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nExpect: 100-continue\r\n\
             Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
        );
        stream.write_all(start.as_bytes()).await.unwrap();
        // The process waits for the form now.
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&status), "HTTP/1.1 100");
        waiting.push(stream);
    }
    let form = platform::http_client(TIMEOUT).unwrap().post(format!("{}{path}", replica.url));
    let form = form.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body("a=b");
    assert_ne!(form.send().await.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    drop(waiting);
}

fn gzipped_letters(megabytes: usize) -> Vec<u8> {
    let letters = vec![b'x'; 1 << 20];
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    for _ in 0..megabytes {
        encoder.write_all(&letters).unwrap();
    }
    encoder.finish().unwrap()
}
