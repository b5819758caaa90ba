//! Endpoints that require a client certificate or a signature of AWS.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

use platform::ClientIdentity;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion};

use super::*;
use crate::client::GuardedClient;
use crate::guard::{Guard, SystemResolver};
use crate::sigv4::AwsCredentials;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

fn roots(authority: &Authority) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    roots
}

fn client_certificate(authority: &Authority) -> Authentication {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["backhaul.example".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let identity = ClientIdentity::parse(&certificate.pem(), &key.serialize_pem()).unwrap();
    Authentication::ClientCertificate(identity)
}

/// Starts a server that requires a certificate of the authority, and returns its URL.
fn start_server(authority: &Authority, version: &'static SupportedProtocolVersion) -> String {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let roots = Arc::new(roots(authority));
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider));
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let config = Arc::clone(&config);
            thread::spawn(move || serve(config, stream.unwrap()));
        }
    });
    format!("https://127.0.0.1:{port}/rmas")
}

/// Responds to each request of a connection.
fn serve(config: Arc<ServerConfig>, mut stream: TcpStream) {
    let mut connection = ServerConnection::new(config).unwrap();
    if connection.complete_io(&mut stream).is_err() {
        // The client reads the alert before it notices that the connection is closed.
        io::copy(&mut stream, &mut io::sink()).ok();
        return;
    }
    let mut tls = rustls::Stream::new(&mut connection, &mut stream);
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    while let Ok(length @ 1..) = tls.read(&mut part) {
        request.extend_from_slice(&part[..length]);
        if request.ends_with(BODY.as_bytes()) {
            request.clear();
            tls.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        }
    }
}

fn trusting_client(authority: &Authority) -> EndpointClient {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(authority))
        .with_no_client_auth();
    let guard = Guard::new(true, &["127.0.0.1/32".parse().unwrap()]);
    let timeout = Duration::from_secs(60);
    let client = GuardedClient::new(guard, Arc::new(SystemResolver), tls, timeout).unwrap();
    let tokens = Tokens::new(client.clone(), timeout);
    EndpointClient { tokens, client, timeout, ..endpoint_client(5000) }
}

#[tokio::test]
async fn an_endpoint_gets_its_client_certificate_and_no_other() {
    let authority = authority();
    let own = client_certificate(&authority);
    let foreign = client_certificate(&self::authority());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let url = start_server(&authority, version);
        let client = trusting_client(&authority);
        let send = async |authentication: &Authentication| {
            let endpoint = endpoint(&url, authentication);
            deliver(&client, &endpoint, ResponseBody::Ignored).await.1.outcome
        };
        assert_eq!(send(&own).await, Outcome::Delivered { status: 200 });
        // The connection with the certificate is kept alive, and must not be used without it.
        for other in [&Authentication::None, &foreign] {
            let outcome = send(other).await;
            assert!(matches!(outcome, Outcome::TlsFailed(_)), "{version:?}: {outcome:?}");
        }
        assert_eq!(send(&own).await, Outcome::Delivered { status: 200 });
    }
}

#[tokio::test]
async fn a_client_with_a_certificate_checks_addresses() {
    let authority = authority();
    let url = start_server(&authority, &rustls::version::TLS13);
    let mut client = trusting_client(&authority);
    client.client = guarded_client(&[]);
    let endpoint = endpoint(&url, &client_certificate(&authority));
    let outcome = deliver(&client, &endpoint, ResponseBody::Ignored).await.1.outcome;
    assert!(matches!(outcome, Outcome::AddressRefused(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_request_with_aws_credentials_is_signed_as_it_is_sent() {
    let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rmas?stage=test", server.local_addr().unwrap());
    let aws = Authentication::AwsSigv4(AwsCredentials {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: "secret-access-key".into(),
        session_token: Some("session-token".into()),
        region: "eu-central-1".to_owned(),
        service: "execute-api".to_owned(),
    });
    let (endpoint, client) = (endpoint(&url, &aws), endpoint_client(60_000));
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        respond_and_close(stream, b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await
    };
    let (request, (_, attempt)) =
        tokio::join!(serving, deliver(&client, &endpoint, ResponseBody::Ignored));
    assert_eq!(attempt.outcome, Outcome::Delivered { status: 200 });
    assert!(!format!("{attempt:?}").contains("session-token"), "{attempt:?}");
    let (_, signed) = request.split_once("SignedHeaders=").unwrap();
    let names = "accept;content-type;host;webhook-id;webhook-signature;webhook-timestamp;\
                 x-amz-date;x-amz-security-token;x-service-api-version;x-service-event;x-service-id;\
                 x-service-sequence;x-tenant";
    assert_eq!(signed.split_once(", ").unwrap().0, names);
    // Every signed header arrived, so that the merchant can compute the signature.
    let arrived = |name: &str| request.lines().any(|line| line.starts_with(&format!("{name}: ")));
    assert!(names.split(';').all(arrived), "{request}");
}
