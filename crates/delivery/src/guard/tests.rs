use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpListener;

use super::{Guard, GuardError, GuardedResolver, Reason};

fn guard(allowed: &[&str]) -> Guard {
    let allowed: Vec<_> = allowed.iter().map(|network| network.parse::<IpNet>().unwrap()).collect();
    Guard::new(false, &allowed)
}

/// Resolver that returns prepared responses in order.
struct PreparedResolver(Mutex<VecDeque<Vec<IpAddr>>>);

impl PreparedResolver {
    fn new(responses: &[&[&str]]) -> Arc<Self> {
        let parse = |response: &&[&str]| response.iter().map(|ip| ip.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(responses.iter().map(parse).collect())))
    }
}

impl Resolve for PreparedResolver {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses = self.0.lock().unwrap().pop_front().unwrap();
        let addresses: Addrs = Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0)));
        Box::pin(async move { Ok(addresses) })
    }
}

#[tokio::test]
async fn forbidden_addresses_are_removed_from_a_dns_response() {
    let resolve = async |addresses: &[&str]| {
        let guarded =
            GuardedResolver::new(Arc::new(guard(&[])), PreparedResolver::new(&[addresses]));
        let found = guarded.resolve("merchant.example".parse().unwrap()).await;
        found.map(|found| found.map(|address| address.ip().to_string()).collect::<Vec<_>>())
    };
    let found = resolve(&["10.0.0.1", "1.1.1.1", "::1", "2606:4700::1111"]).await.unwrap();
    assert_eq!(found, ["1.1.1.1", "2606:4700::1111"]);
    assert!(resolve(&[]).await.unwrap().is_empty());
    let refused = resolve(&["10.0.0.1", "::1"]).await.unwrap_err();
    assert!(refused.downcast_ref::<GuardError>().is_some());
}

#[tokio::test]
async fn a_host_name_is_checked_on_every_connection() {
    let allowed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = allowed.local_addr().unwrap().port();
    let forbidden = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
    let resolver = PreparedResolver::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let guard = Arc::new(guard(&["127.0.0.1/32"]));
    let client = reqwest::Client::builder()
        .dns_resolver(GuardedResolver::new(guard, resolver.clone()))
        .tls_backend_preconfigured(crate::test_merchant::tls())
        .no_proxy()
        .build()
        .unwrap();

    // Each connection resolves once: nothing is resolved between the check and the connection.
    let first = client.get(format!("http://rebinding.example:{port}/")).send();
    let server = async {
        let (stream, _) = allowed.accept().await.unwrap();
        crate::test_merchant::respond_and_close(
            stream,
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
        )
        .await;
    };
    let (first, ()) = tokio::join!(first, server);
    assert_eq!(first.unwrap().status(), 200);
    assert_eq!(resolver.0.lock().unwrap().len(), 1);

    let second = client.get(format!("http://rebinding.example:{port}/")).send().await.unwrap_err();
    let refused = crate::client::cause::<GuardError>(&second).unwrap();
    assert!(matches!(refused, GuardError::Address { reason: Reason::Loopback, .. }));
    let connected =
        std::future::poll_fn(|cx| std::task::Poll::Ready(forbidden.poll_accept(cx).is_ready()))
            .await;
    assert!(!connected, "the forbidden address was connected to");
}
