//! TLS as the contract requires it: 1.2 only, certificates renewed without a restart.

use std::{path::Path, sync::Arc, time::Duration};

use rcgen::{CertificateParams, KeyPair, SerialNumber};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore,
    pki_types::{CertificateDer, ServerName},
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::start;

/// A self-signed certificate for localhost, written to the folder; returned for clients to trust.
pub(crate) fn certificate(folder: &Path, serial: u64) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(serial));
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(folder.join("key.pem"), key.serialize_pem()).unwrap();
    std::fs::write(folder.join("cert.pem"), certificate.pem()).unwrap();
    certificate.der().clone()
}

/// Performs a TLS handshake.
pub(crate) async fn connect(
    url: &str,
    trusted: &[CertificateDer<'static>],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    let config = ClientConfig::builder_with_provider(Arc::new(
        rustls::crypto::aws_lc_rs::default_provider(),
    ))
    .with_protocol_versions(versions)
    .unwrap()
    .with_root_certificates(roots)
    .with_no_client_auth();
    let stream = TcpStream::connect(url.strip_prefix("https://").unwrap()).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Performs a TLS handshake. Returns the version and the certificate shown.
async fn handshake(
    url: &str,
    trusted: &[CertificateDer<'static>],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> std::io::Result<(ProtocolVersion, CertificateDer<'static>)> {
    let stream = connect(url, trusted, versions).await?;
    let (_, session) = stream.get_ref();
    let shown = session.peer_certificates().unwrap().first().unwrap().clone().into_owned();
    Ok((session.protocol_version().unwrap(), shown))
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_1_2_only_unless_switched_and_certificates_are_renewed_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let first = certificate(folder.path(), 1);
    let cert = path("cert.pem");
    let key = path("key.pem");
    let files = [("HTTP__TLS__CERTIFICATE", cert.as_str()), ("HTTP__TLS__KEY", key.as_str())];
    let service = start(&files).await;
    let (version, _) =
        handshake(&service.url, std::slice::from_ref(&first), &[&TLS12, &TLS13]).await.unwrap();
    assert_eq!(version, ProtocolVersion::TLSv1_2);
    assert!(
        handshake(&service.url, std::slice::from_ref(&first), &[&TLS13]).await.is_err(),
        "TLS 1.3 was spoken"
    );

    let second = certificate(folder.path(), 2);
    testkit::eventually("the new certificate is shown", Duration::from_secs(300), async || {
        let (_, shown) =
            handshake(&service.url, &[first.clone(), second.clone()], &[&TLS12]).await.ok()?;
        (shown == second).then_some(())
    })
    .await;
    assert!(service.stop().await);

    let mut both = files.to_vec();
    both.push(("HTTP__TLS__ALLOW_TLS13", "true"));
    let service = start(&both).await;
    assert_eq!(
        handshake(&service.url, &[second], &[&TLS13]).await.unwrap().0,
        ProtocolVersion::TLSv1_3
    );
    assert!(service.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_that_does_not_come_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let trusted = certificate(folder.path(), 1);
    let service = start(&[
        ("HTTP__TLS__CERTIFICATE", &path("cert.pem")),
        ("HTTP__TLS__KEY", &path("key.pem")),
        ("HTTP__HEADER_TIMEOUT", "1s"),
        ("HTTP__KEEP_ALIVE", "1s"),
    ])
    .await;
    let mut stream = connect(&service.url, &[trusted], &[&TLS12]).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream.write_all(b"G").await.unwrap();
    let rest = &mut Vec::new();
    // However it hangs up.
    let end = tokio::time::timeout(Duration::from_secs(120), stream.read_to_end(rest)).await;
    drop(end.expect("the server waits for ever"));
    assert!(service.stop().await);
}
