//! What the tests of several modules need.

use std::sync::Arc;

use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A client that trusts no one: enough for plain HTTP, and for TLS that must fail.
pub(crate) fn tls() -> rustls::ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}

/// Reads a request's head and answers with these bytes, whatever was asked.
pub(crate) async fn answer_and_close(mut stream: TcpStream, answer: &[u8]) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream.write_all(answer).await.unwrap();
}
