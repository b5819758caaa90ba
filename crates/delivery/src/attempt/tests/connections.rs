//! Connections that are kept alive.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::*;
use crate::test_merchant::read_request;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// Responds to the first request on a connection, reads the second and closes the connection.
async fn respond_once(mut stream: TcpStream) -> String {
    read_request(&mut stream).await;
    stream.write_all(OK).await.unwrap();
    read_request(&mut stream).await
}

/// Lets the client put the connection back into its pool.
async fn until_idle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_kept_alive_connection_that_the_merchant_closed_costs_no_attempt() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rmas", server.local_addr().unwrap());
    let (endpoint, client) = (endpoint(&url, &Authentication::None), endpoint_client(60_000));
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        let lost = respond_once(stream).await;
        let (stream, _) = server.accept().await.unwrap();
        (lost, respond_and_close(stream, OK).await)
    };
    let sending = async {
        let first = deliver(&client, &endpoint, ResponseBody::Ignored).await.1;
        until_idle().await;
        (first, deliver(&client, &endpoint, ResponseBody::Ignored).await.1)
    };
    let ((lost, resent), (first, second)) = tokio::join!(serving, sending);
    assert_eq!(first.outcome, Outcome::Delivered { status: 200 });
    assert_eq!(second.outcome, Outcome::Delivered { status: 200 });
    assert_eq!(lost, resent, "the same request was sent again");
}

#[tokio::test]
async fn a_new_connection_that_the_merchant_closes_is_a_failed_attempt() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rmas", server.local_addr().unwrap());
    let (endpoint, client) = (endpoint(&url, &Authentication::None), endpoint_client(60_000));
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        respond_and_close(stream, b"").await;
    };
    let ((), (_, attempt)) =
        tokio::join!(serving, deliver(&client, &endpoint, ResponseBody::Ignored));
    assert!(matches!(attempt.outcome, Outcome::Unreachable(_)), "{attempt:?}");
}

#[tokio::test]
async fn a_request_is_sent_again_only_once() {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rmas", server.local_addr().unwrap());
    let (endpoint, client) = (endpoint(&url, &Authentication::None), endpoint_client(60_000));
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        respond_once(stream).await;
        let (stream, _) = server.accept().await.unwrap();
        respond_and_close(stream, b"").await;
    };
    let sending = async {
        deliver(&client, &endpoint, ResponseBody::Ignored).await;
        until_idle().await;
        deliver(&client, &endpoint, ResponseBody::Ignored).await.1
    };
    let ((), attempt) = tokio::join!(serving, sending);
    assert!(matches!(attempt.outcome, Outcome::Unreachable(_)), "{attempt:?}");
}
