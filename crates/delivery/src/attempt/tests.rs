mod client_certificates;
mod connections;
mod headers;
mod tokens;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::labels::MAX_LABEL_RESPONSE_BYTES;
use domain::message_kind::{MessageKind, MessageVersion};
use expect_test::expect;
use platform::MemoryBudget;
use platform::signing::Secret;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use super::{Attempt, EndpointClient, Message, Query, ResponseBody};
use crate::ack_tracker::SLOW_AFTER;
use crate::endpoint::{Authentication, Endpoint};
use crate::guard::GuardError;
use crate::outcome::{self, Decision, Jitter, Outcome, Schedule, Signal};
use crate::test_merchant::{TestMerchant, client, guarded_client, respond_and_close};
use crate::tokens::{ClientCredentials, Placement, Tokens};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &str = "{ \"rma_identifier\" : \"R-1\",\n\"note\":\"Größe\" }";

fn now() -> DateTime<Utc> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the sandbox checks timestamps against the clock"
    )]
    Utc::now()
}

fn endpoint_client(timeout_ms: u64) -> EndpointClient {
    let client = client();
    EndpointClient {
        tokens: Tokens::new(client.clone(), Duration::from_secs(5)),
        client,
        timeout: Duration::from_millis(timeout_ms),
        long_responses: MemoryBudget::new(2 * MAX_LABEL_RESPONSE_BYTES),
    }
}

fn message(response_body: ResponseBody) -> Message {
    Message {
        id: "msg_1".to_owned(),
        merchant: "blue".to_owned(),
        kind: MessageKind::Rma,
        version: MessageVersion(3),
        event: "rma.created".to_owned(),
        sequence: 7,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        body: Bytes::from_static(BODY.as_bytes()),
        response_body,
    }
}

fn endpoint(url: &str, authentication: &Authentication) -> Endpoint {
    let headers = [("X-Tenant".to_owned(), "blue".to_owned())];
    let secrets = vec![Secret::parse(SECRET).unwrap()];
    Endpoint::new(Url::parse(url).unwrap(), secrets, authentication, &headers).unwrap()
}

fn oauth(merchant: &TestMerchant) -> Authentication {
    Authentication::ClientCredentials(Arc::new(ClientCredentials {
        token_url: Url::parse(&merchant.running.url("/oauth/token")).unwrap(),
        client_id: "backhaul".to_owned(),
        client_secret: "secret".into(),
        scope: None,
        placement: Placement::Body,
    }))
}

async fn deliver(
    endpoint_client: &EndpointClient,
    endpoint: &Endpoint,
    response_body: ResponseBody,
) -> (Option<Attempt>, Attempt) {
    endpoint_client.deliver(&message(response_body), endpoint, now(), Jitter::MIDDLE).await
}

fn decide(attempt: &Attempt, number: u32) -> Decision {
    outcome::decide(&Schedule::default(), &attempt.outcome, number, now(), Jitter::MIDDLE)
}

#[tokio::test]
async fn a_message_arrives_signed_and_byte_for_byte() {
    let merchant = TestMerchant::new();
    let secrets = json!({"secrets": [SECRET]});
    merchant.request(reqwest::Method::PUT, "/secrets", &secrets).await;
    let key = Authentication::ApiKey { header: "x-api-key".into(), key: "k".into() };
    let endpoint = endpoint(&merchant.running.url("/rmas"), &key);
    let (unauthorized, attempt) =
        deliver(&endpoint_client(5000), &endpoint, ResponseBody::Ignored).await;
    assert_eq!(attempt.outcome, Outcome::Delivered { status: 200 });
    assert_eq!((decide(&attempt, 1), attempt.signal), (Decision::Delivered, Signal::Grow));
    assert_eq!(attempt.response, r#"{"message":"received"}"#);
    assert!(unauthorized.is_none());

    let mut entry = merchant.journal("/rmas").await.entries.remove(0);
    assert_eq!(serde_json::to_value(entry.signature).unwrap(), "valid");
    // The signature covers the body; the length shows that nothing was appended.
    let length = entry.headers.remove("content-length").unwrap();
    assert_eq!(length, BODY.len().to_string());
    for variable in ["host", "webhook-signature", "webhook-timestamp"] {
        assert!(entry.headers.remove(variable).is_some(), "{variable}");
    }
    expect![[r#"
        {
          "accept": "application/json",
          "content-type": "application/json",
          "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
          "user-agent": "backhaul/0.1.0",
          "webhook-id": "msg_1",
          "x-api-key": "k",
          "x-service-api-version": "3",
          "x-service-event": "rma.created",
          "x-service-id": "blue",
          "x-service-sequence": "7",
          "x-tenant": "blue"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&entry.headers).unwrap());
}

#[tokio::test]
async fn a_retry_has_a_new_signature() {
    let merchant = TestMerchant::new();
    let secrets = json!({"secrets": [SECRET]});
    merchant.request(reqwest::Method::PUT, "/secrets", &secrets).await;
    let endpoint = endpoint(&merchant.running.url("/rmas"), &Authentication::None);
    let (endpoint_client, message) = (endpoint_client(5000), message(ResponseBody::Ignored));
    let times = [now(), now() + TimeDelta::minutes(2)];
    for at in times {
        endpoint_client.deliver(&message, &endpoint, at, Jitter::MIDDLE).await;
    }
    let entries = merchant.journal("/rmas").await.entries;
    for (entry, at) in entries.iter().zip(times) {
        assert_eq!(serde_json::to_value(entry.signature).unwrap(), "valid");
        let (headers, at) = (&entry.headers, at.timestamp().to_string());
        assert_eq!(
            (&headers["webhook-id"], &headers["webhook-timestamp"]),
            (&json!("msg_1"), &json!(at))
        );
    }
    assert_eq!(entries.len(), 2);
}

#[track_caller]
fn check(attempt: &Attempt, outcome: &Outcome, signal: Signal) {
    assert_eq!((&attempt.outcome, attempt.signal), (outcome, signal));
    let is_delivered = matches!(outcome, Outcome::Delivered { .. });
    assert_eq!(decide(attempt, 1) == Decision::Delivered, is_delivered);
}

#[tokio::test]
async fn each_response_has_its_outcome() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &Authentication::None);
    let endpoint_client = endpoint_client(300);
    let on = async |step: Value, response_body| {
        merchant.behave("/rmas", json!([step])).await;
        deliver(&endpoint_client, &endpoint, response_body).await.1
    };
    let delivered = Outcome::Delivered { status: 200 };
    let status_only = |status: u16| json!({"do": "respond", "status": status});
    for (status, outcome, signal) in [
        (201, Outcome::Delivered { status: 201 }, Signal::Grow),
        (401, Outcome::Unauthorized, Signal::Shrink),
        (410, Outcome::Rejected { status: 410, retry_after: None }, Signal::Shrink),
        (422, Outcome::Rejected { status: 422, retry_after: None }, Signal::Hold),
        (500, Outcome::Rejected { status: 500, retry_after: None }, Signal::Shrink),
    ] {
        check(&on(status_only(status), ResponseBody::Ignored).await, &outcome, signal);
    }
    let redirect = json!({"do": "redirect", "location": merchant.running.url("/outbound_asn")});
    let redirected = Outcome::Redirected { status: 302 };
    check(&on(redirect, ResponseBody::Ignored).await, &redirected, Signal::Shrink);
    assert!(merchant.journal("/outbound_asn").await.entries.is_empty(), "followed a redirect");

    let (hang, drip, huge) = (json!({"do": "hang"}), json!({"do": "drip"}), json!({"do": "huge"}));
    check(&on(hang, ResponseBody::Ignored).await, &Outcome::TimedOut, Signal::Shrink);
    // A 2xx is a success even if its body is cut off, unless the body is required. A body that is
    // too large is truncated and counts as delivered.
    check(&on(drip.clone(), ResponseBody::Ignored).await, &delivered, Signal::Shrink);
    check(&on(drip, ResponseBody::Required).await, &Outcome::TimedOut, Signal::Shrink);
    for response_body in [ResponseBody::Ignored, ResponseBody::Required] {
        let cut = on(huge.clone(), response_body).await;
        check(&cut, &delivered, Signal::Grow);
        assert_eq!(cut.response.len(), 64 * 1024);
    }

    let reset = on(json!({"do": "reset"}), ResponseBody::Ignored).await;
    assert!(matches!(reset.outcome, Outcome::Unreachable(_)), "{reset:?}");
}

const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
const REFUSED: &[u8] = b"HTTP/1.1 422 No\r\ncontent-length: 100\r\n\r\n{";

/// Sends a message to an endpoint that responds after a delay and then closes the connection.
async fn cut_off(response: &[u8], delay: Duration, response_body: ResponseBody) -> Attempt {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rmas", server.local_addr().unwrap());
    let endpoint = endpoint(&url, &Authentication::None);
    let endpoint_client = endpoint_client(5000);
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        tokio::time::pause();
        tokio::time::advance(delay).await;
        tokio::time::resume();
        respond_and_close(stream, response).await
    };
    tokio::join!(deliver(&endpoint_client, &endpoint, response_body), serving).0.1
}

#[tokio::test]
async fn a_response_that_is_cut_off_counts_by_its_status() {
    let send =
        async |response, response_body| cut_off(response, Duration::ZERO, response_body).await;
    let delivered = Outcome::Delivered { status: 200 };
    check(&send(ACCEPTED, ResponseBody::Ignored).await, &delivered, Signal::Grow);
    let required = send(ACCEPTED, ResponseBody::Required).await;
    assert!(matches!(required.outcome, Outcome::Unreachable(_)), "{required:?}");
    assert_eq!(required.signal, Signal::Shrink);
    let rejected = Outcome::Rejected { status: 422, retry_after: None };
    check(&send(REFUSED, ResponseBody::Ignored).await, &rejected, Signal::Hold);
}

#[tokio::test]
async fn a_response_that_is_cut_off_late_shrinks_the_window() {
    let send = async |response| cut_off(response, SLOW_AFTER, ResponseBody::Ignored).await;
    check(&send(ACCEPTED).await, &Outcome::Delivered { status: 200 }, Signal::Shrink);
    let rejected = Outcome::Rejected { status: 422, retry_after: None };
    check(&send(REFUSED).await, &rejected, Signal::Shrink);
}

#[tokio::test]
async fn a_retry_after_postpones_the_next_attempt() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &Authentication::None);
    let step = json!([{"do": "respond", "status": 429, "retry_after": "120"}]);
    merchant.behave("/rmas", step).await;
    let (_, attempt) = deliver(&endpoint_client(5000), &endpoint, ResponseBody::Ignored).await;
    let Decision::RetryAt(at) = decide(&attempt, 1) else { panic!("{attempt:?}") };
    assert!((at - attempt.started_at - TimeDelta::seconds(120)).abs() < TimeDelta::seconds(5));
    assert!(matches!(attempt.outcome, Outcome::Rejected { status: 429, retry_after: Some(_) }));
}

#[tokio::test]
async fn each_connection_failure_has_its_outcome() {
    let send = async |endpoint_client: EndpointClient, url: &str| {
        let endpoint = endpoint(url, &Authentication::None);
        deliver(&endpoint_client, &endpoint, ResponseBody::Ignored).await.1
    };
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let refused = send(endpoint_client(5000), &format!("http://{closed}/rmas")).await;
    assert!(matches!(refused.outcome, Outcome::Unreachable(_)), "{refused:?}");
    assert_eq!(decide(&refused, 6), Decision::Dead);
    let unresolved = send(endpoint_client(5000), "http://nowhere.invalid/rmas").await;
    assert!(matches!(unresolved.outcome, Outcome::Unreachable(_)), "{unresolved:?}");

    let strict = EndpointClient { client: guarded_client(&[]), ..endpoint_client(5000) };
    for url in ["http://127.0.0.1/rmas", "http://localhost/rmas", "http://[::1]/rmas"] {
        let outcome = send(strict.clone(), url).await.outcome;
        assert!(
            matches!(outcome, Outcome::AddressRefused(GuardError::Address { .. })),
            "{outcome:?}"
        );
    }

    let merchant = TestMerchant::new();
    let no_tls = merchant.running.url("/rmas").replace("http:", "https:");
    let failed = send(endpoint_client(5000), &no_tls).await;
    assert!(matches!(failed.outcome, Outcome::TlsFailed(_)), "{failed:?}");
    let untrusted = send(endpoint_client(5000), &start_self_signed()).await;
    let Outcome::TlsFailed(why) = &untrusted.outcome else { panic!("{untrusted:?}") };
    assert!(why.contains("UnknownIssuer"), "{why}");
}

/// Starts a server with a self-signed certificate for one handshake, and returns its URL.
fn start_self_signed() -> String {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.unwrap())
        .unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut connection = rustls::ServerConnection::new(Arc::new(config)).unwrap();
        connection.complete_io(&mut stream).ok();
    });
    format!("https://127.0.0.1:{port}/rmas")
}

#[tokio::test]
async fn the_response_to_a_label_request_may_be_long_while_there_is_memory() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/label_requests"), &Authentication::None);
    let label = Message { kind: MessageKind::LabelRequest, ..message(ResponseBody::Required) };
    let client = endpoint_client(5000);
    let send = async |client: &EndpointClient| {
        client.deliver(&label, &endpoint, now(), Jitter::MIDDLE).await.1
    };
    let huge = |bytes: usize| json!({"do": "huge", "bytes": bytes});
    let most = MAX_LABEL_RESPONSE_BYTES;
    merchant.behave("/label_requests", json!([huge(most), huge(most + 1), huge(most)])).await;
    let delivered = Outcome::Delivered { status: 200 };
    let whole = send(&client).await;
    assert_eq!((whole.response.len(), &whole.outcome), (most, &delivered));
    let cut = send(&client).await;
    assert_eq!((cut.response.len(), &cut.outcome), (most, &delivered));
    // The two have all memory. A further long response waits for it, a short one does not.
    let impatient = EndpointClient { timeout: Duration::from_millis(500), ..client.clone() };
    assert_eq!(send(&impatient).await.outcome, Outcome::TimedOut);
    assert_eq!(send(&client).await.outcome, delivered);
    assert_eq!(client.long_responses.used_bytes(), 2 * most);
    drop((whole, cut));
    assert_eq!(client.long_responses.used_bytes(), 0);
}

#[tokio::test]
async fn one_timeout_covers_all_requests_of_a_query() {
    let merchant = TestMerchant::new();
    let endpoint = endpoint(&merchant.running.url("/sku/TEE/variants"), &oauth(&merchant));
    let query = Query {
        merchant: "blue".to_owned(),
        version: MessageVersion(1),
        traceparent: None,
        max_response_bytes: 200_000,
    };
    let fetch = async |endpoint_client: &EndpointClient| {
        endpoint_client.fetch(&query, &endpoint, now(), Jitter::MIDDLE).await
    };
    let client = endpoint_client(5000);
    let attempt = fetch(&client).await;
    assert_eq!(attempt.outcome, Outcome::Delivered { status: 200 });
    let variants: Value = serde_json::from_slice(&attempt.response).unwrap();
    assert_eq!(variants[0]["sku"], "TEE-S");
    let headers = &merchant.journal("/sku/TEE/variants").await.entries[0].headers;
    assert_eq!(headers["x-service-api-version"], "1");
    assert_eq!(headers["x-service-id"], "blue");
    assert!(!headers.contains_key("webhook-id"));

    let expire = json!([{"do": "expire_token", "times": "always"}]);
    merchant.behave("/sku/TEE/variants", expire).await;
    assert_eq!(fetch(&client).await.outcome, Outcome::Delivered { status: 200 });

    let huge = json!([{"do": "huge", "bytes": 200_000}, {"do": "huge", "bytes": 200_001}]);
    merchant.behave("/sku/TEE/variants", huge).await;
    assert_eq!(fetch(&client).await.response.len(), 200_000);
    assert_eq!(fetch(&client).await.outcome, Outcome::ResponseTooLarge { status: 200 });

    let slow = json!([{"do": "respond", "status": 401, "delay_ms": 200, "times": "always"}]);
    merchant.behave("/sku/TEE/variants", slow).await;
    let second = fetch(&endpoint_client(300)).await;
    assert_eq!(second.outcome, Outcome::TimedOut);
    assert!(second.latency < Duration::from_millis(200), "{:?}", second.latency);
}
