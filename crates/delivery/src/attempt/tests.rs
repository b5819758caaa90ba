use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use domain::message_kind::MessageKind;
use expect_test::expect;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use url::Url;

use super::{Attempted, EndpointClient, Message, Query, Reply};
use crate::ack_tracker::SLOW;
use crate::endpoint::{Authentication, Endpoint};
use crate::fixture::{Merchant, answer_and_close, client, guarded};
use crate::guard::Refused;
use crate::outcome::{Jitter, Outcome, Schedule, Signal, Step};
use crate::signing::Secret;
use crate::tokens::{ClientCredentials, Placement, Tokens};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &str = "{ \"rma_identifier\" : \"R-1\",\n\"note\":\"Größe\" }";

fn now() -> DateTime<Utc> {
    #[expect(clippy::disallowed_methods, reason = "the sandbox judges timestamps by the clock")]
    Utc::now()
}

fn endpoint_client(deadline_ms: u64) -> EndpointClient {
    let client = client();
    EndpointClient {
        tokens: Tokens::new(client.clone(), Duration::from_secs(5)),
        client,
        schedule: Schedule::default(),
        deadline: Duration::from_millis(deadline_ms),
    }
}

fn message(reply: Reply) -> Message {
    Message {
        id: "msg_1".to_owned(),
        merchant: "blue".to_owned(),
        kind: MessageKind::Rma,
        event: "rma.created".to_owned(),
        sequence: 7,
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned()),
        body: Bytes::from_static(BODY.as_bytes()),
        reply,
    }
}

fn endpoint(url: &str, authentication: &Authentication) -> Endpoint {
    let own = [("X-Tenant".to_owned(), "blue".to_owned())];
    let secrets = vec![Secret::parse(SECRET).unwrap()];
    Endpoint::new(Url::parse(url).unwrap(), secrets, authentication, &own).unwrap()
}

fn oauth(merchant: &Merchant) -> Authentication {
    Authentication::ClientCredentials(Arc::new(ClientCredentials {
        token_url: Url::parse(&merchant.running.url("/oauth/token")).unwrap(),
        client_id: "backhaul".to_owned(),
        client_secret: "secret".into(),
        scope: None,
        placement: Placement::Body,
    }))
}

async fn attempt(
    endpoint_client: &EndpointClient,
    endpoint: &Endpoint,
    reply: Reply,
    number: u32,
) -> Attempted {
    endpoint_client.attempt(&message(reply), endpoint, number, now(), Jitter::MIDDLE).await
}

#[tokio::test]
async fn a_message_arrives_signed_and_byte_for_byte() {
    let merchant = Merchant::new();
    let secrets = json!({"secrets": [SECRET]});
    merchant.ask(reqwest::Method::PUT, "/secrets", &secrets).await;
    let key = Authentication::ApiKey { header: "x-api-key".into(), key: "k".into() };
    let endpoint = endpoint(&merchant.running.url("/rmas"), &key);
    let done = attempt(&endpoint_client(5000), &endpoint, Reply::Ignored, 1).await;
    assert_eq!(done.last.outcome, Outcome::Delivered { status: 200 });
    assert_eq!((done.step, done.last.signal), (Step::Delivered, Signal::Grow));
    assert_eq!(done.last.answer, r#"{"message":"received"}"#);
    assert!(done.refused.is_none());

    let mut entry = merchant.journal("/rmas").await.entries.remove(0);
    assert_eq!(serde_json::to_value(entry.signature).unwrap(), "valid");
    // The signature covers every byte of the body; the length says that nothing came after it.
    let length = entry.headers.remove("content-length").unwrap();
    assert_eq!(length, BODY.len().to_string());
    for changing in ["host", "webhook-signature", "webhook-timestamp"] {
        assert!(entry.headers.remove(changing).is_some(), "{changing}");
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
async fn a_retry_is_signed_anew() {
    let merchant = Merchant::new();
    let secrets = json!({"secrets": [SECRET]});
    merchant.ask(reqwest::Method::PUT, "/secrets", &secrets).await;
    let endpoint = endpoint(&merchant.running.url("/rmas"), &Authentication::None);
    let (endpoint_client, message, first) = (endpoint_client(5000), message(Reply::Ignored), now());
    let times = [first, first + TimeDelta::minutes(2)];
    for (number, at) in (1..).zip(times) {
        endpoint_client.attempt(&message, &endpoint, number, at, Jitter::MIDDLE).await;
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
fn check(done: &Attempted, outcome: &Outcome, signal: Signal) {
    assert_eq!((&done.last.outcome, done.last.signal), (outcome, signal));
    let delivered = matches!(outcome, Outcome::Delivered { .. });
    assert_eq!(done.step == Step::Delivered, delivered);
}

#[tokio::test]
async fn what_the_endpoint_does_becomes_an_outcome() {
    let merchant = Merchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &Authentication::None);
    let endpoint_client = endpoint_client(300);
    let on = async |step: Value, reply| {
        merchant.behave("/rmas", json!([step])).await;
        attempt(&endpoint_client, &endpoint, reply, 1).await
    };
    let delivered = Outcome::Delivered { status: 200 };
    let answer = |status: u16| json!({"do": "answer", "status": status});
    for (status, outcome, signal) in [
        (201, Outcome::Delivered { status: 201 }, Signal::Grow),
        (401, Outcome::Unauthorized, Signal::Shrink),
        (410, Outcome::Gone, Signal::Shrink),
        (422, Outcome::Rejected { status: 422, retry_after: None }, Signal::Hold),
        (500, Outcome::Rejected { status: 500, retry_after: None }, Signal::Shrink),
    ] {
        check(&on(answer(status), Reply::Ignored).await, &outcome, signal);
    }
    let redirect = json!({"do": "redirect", "location": merchant.running.url("/outbound_asn")});
    let redirected = Outcome::Redirected { status: 302 };
    check(&on(redirect, Reply::Ignored).await, &redirected, Signal::Shrink);
    assert!(merchant.journal("/outbound_asn").await.entries.is_empty(), "followed a redirect");

    let (hang, drip, huge) = (json!({"do": "hang"}), json!({"do": "drip"}), json!({"do": "huge"}));
    check(&on(hang, Reply::Ignored).await, &Outcome::TimedOut, Signal::Shrink);
    // A 2xx is a success however the rest of the answer ends, unless the rest is needed. What is
    // too long to be read is not.
    check(&on(drip.clone(), Reply::Ignored).await, &delivered, Signal::Shrink);
    check(&on(drip, Reply::Needed).await, &Outcome::TimedOut, Signal::Shrink);
    for reply in [Reply::Ignored, Reply::Needed] {
        let begun = on(huge.clone(), reply).await;
        check(&begun, &delivered, Signal::Grow);
        assert_eq!(begun.last.answer.len(), 64 * 1024);
    }

    let reset = on(json!({"do": "reset"}), Reply::Ignored).await;
    assert!(matches!(reset.last.outcome, Outcome::Unreachable(_)), "{reset:?}");
}

const ACCEPTED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{";
const REFUSED: &[u8] = b"HTTP/1.1 422 No\r\ncontent-length: 100\r\n\r\n{";

/// An attempt whose answer is this much, after so long, and then nothing more.
async fn cut_short(answer: &[u8], after: Duration, reply: Reply) -> Attempted {
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/rmas", server.local_addr().unwrap());
    let endpoint = endpoint(&url, &Authentication::None);
    let endpoint_client = endpoint_client(5000);
    let serving = async {
        let (stream, _) = server.accept().await.unwrap();
        tokio::time::pause();
        tokio::time::advance(after).await;
        tokio::time::resume();
        answer_and_close(stream, answer).await
    };
    tokio::join!(attempt(&endpoint_client, &endpoint, reply, 1), serving).0
}

#[tokio::test]
async fn an_answer_that_breaks_off_says_no_more_than_its_status() {
    let send = async |answer, reply| cut_short(answer, Duration::ZERO, reply).await;
    let delivered = Outcome::Delivered { status: 200 };
    check(&send(ACCEPTED, Reply::Ignored).await, &delivered, Signal::Grow);
    let needed = send(ACCEPTED, Reply::Needed).await;
    assert!(matches!(needed.last.outcome, Outcome::Unreachable(_)), "{needed:?}");
    assert_eq!(needed.last.signal, Signal::Shrink);
    let rejected = Outcome::Rejected { status: 422, retry_after: None };
    check(&send(REFUSED, Reply::Ignored).await, &rejected, Signal::Hold);
}

#[tokio::test]
async fn an_endpoint_that_breaks_off_late_is_sent_less() {
    let send = async |answer| cut_short(answer, SLOW, Reply::Ignored).await;
    check(&send(ACCEPTED).await, &Outcome::Delivered { status: 200 }, Signal::Shrink);
    let rejected = Outcome::Rejected { status: 422, retry_after: None };
    check(&send(REFUSED).await, &rejected, Signal::Shrink);
}

#[tokio::test]
async fn a_retry_after_moves_the_next_attempt() {
    let merchant = Merchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &Authentication::None);
    let step = json!([{"do": "answer", "status": 429, "retry_after": "120"}]);
    merchant.behave("/rmas", step).await;
    let done = attempt(&endpoint_client(5000), &endpoint, Reply::Ignored, 1).await;
    let Step::Retry { at } = done.step else { panic!("{done:?}") };
    assert!((at - done.last.at - TimeDelta::seconds(120)).abs() < TimeDelta::seconds(5));
    assert!(matches!(done.last.outcome, Outcome::Rejected { status: 429, retry_after: Some(_) }));
}

#[tokio::test]
async fn what_cannot_be_reached_becomes_an_outcome() {
    let send = async |endpoint_client: EndpointClient, url: &str| {
        attempt(&endpoint_client, &endpoint(url, &Authentication::None), Reply::Ignored, 6).await
    };
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = send(endpoint_client(5000), &format!("http://{closed}/rmas")).await;
    assert!(matches!(nobody.last.outcome, Outcome::Unreachable(_)), "{nobody:?}");
    assert_eq!(nobody.step, Step::Dead);
    let nameless = send(endpoint_client(5000), "http://nowhere.invalid/rmas").await;
    assert!(matches!(nameless.last.outcome, Outcome::Unreachable(_)), "{nameless:?}");

    let strict = EndpointClient { client: guarded(&[]), ..endpoint_client(5000) };
    for url in ["http://127.0.0.1/rmas", "http://localhost/rmas", "http://[::1]/rmas"] {
        let refused = send(strict.clone(), url).await;
        let outcome = &refused.last.outcome;
        assert!(matches!(outcome, Outcome::AddressRefused(Refused::Address { .. })), "{outcome:?}");
    }

    let merchant = Merchant::new();
    let no_tls = merchant.running.url("/rmas").replace("http:", "https:");
    let failed = send(endpoint_client(5000), &no_tls).await;
    assert!(matches!(failed.last.outcome, Outcome::TlsFailed(_)), "{failed:?}");
    let untrusted = send(endpoint_client(5000), &unknown_authority()).await;
    let Outcome::TlsFailed(why) = &untrusted.last.outcome else { panic!("{untrusted:?}") };
    assert!(why.contains("UnknownIssuer"), "{why}");
}

/// The address of a server whose certificate nobody vouches for. It serves one handshake.
fn unknown_authority() -> String {
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
async fn a_401_costs_a_new_token_and_no_attempt() {
    let merchant = Merchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let endpoint_client = endpoint_client(5000);
    assert_eq!(attempt(&endpoint_client, &endpoint, Reply::Ignored, 1).await.step, Step::Delivered);
    let expire = json!([{"do": "expire_token", "times": "always"}]);
    merchant.behave("/rmas", expire).await;
    let done = attempt(&endpoint_client, &endpoint, Reply::Ignored, 6).await;
    assert_eq!(done.step, Step::Delivered);
    assert_eq!(done.refused.unwrap().outcome, Outcome::Unauthorized);

    let entries = merchant.journal("/rmas").await.entries;
    let tokens: Vec<_> =
        entries.iter().map(|entry| entry.headers["authorization"].as_str().unwrap()).collect();
    let token = |number: u32| format!("Bearer sandbox-token-{number}");
    assert_eq!(tokens, [token(1), token(1), token(2)]);
    assert!(entries.iter().all(|entry| entry.headers["webhook-id"] == "msg_1"));
}

#[tokio::test]
async fn a_second_401_counts() {
    let merchant = Merchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let never = json!([{"do": "answer", "status": 401, "times": "always"}]);
    merchant.behave("/rmas", never).await;
    let done = attempt(&endpoint_client(5000), &endpoint, Reply::Ignored, 1).await;
    assert!(matches!(done.step, Step::Retry { .. }));
    assert_eq!(done.last.outcome, Outcome::Unauthorized);
    assert_eq!(merchant.journal("/rmas").await.entries.len(), 2);
    let last = attempt(&endpoint_client(5000), &endpoint, Reply::Ignored, 6).await;
    assert_eq!(last.step, Step::Dead);
}

#[tokio::test]
async fn a_token_server_that_fails_is_a_failure_of_the_message_and_not_its_end() {
    let merchant = Merchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let failing = json!([{"do": "answer", "status": 410}, {"do": "hang"}]);
    merchant.behave("/oauth/token", failing).await;
    for _ in 0..2 {
        let done = attempt(&endpoint_client(300), &endpoint, Reply::Ignored, 1).await;
        assert!(matches!(done.last.outcome, Outcome::TokenRefused(_)), "{done:?}");
        assert!(matches!(done.step, Step::Retry { .. }));
    }
    assert!(merchant.journal("/rmas").await.entries.is_empty());
}

#[tokio::test]
async fn a_thousand_concurrent_401s_cost_one_token_call() {
    let merchant = Merchant::new();
    let endpoint = endpoint(&merchant.running.url("/rmas"), &oauth(&merchant));
    let endpoint_client = endpoint_client(30_000);
    attempt(&endpoint_client, &endpoint, Reply::Ignored, 1).await;
    let expire = json!([{"do": "expire_token", "times": "always"}]);
    merchant.behave("/rmas", expire).await;
    let all =
        join_all((0..1000).map(|_| attempt(&endpoint_client, &endpoint, Reply::Ignored, 1))).await;
    assert!(all.iter().all(|done| done.step == Step::Delivered));
    let issued = merchant.ask(reqwest::Method::GET, "/tokens", &json!({})).await;
    assert_eq!(issued, json!({"issued": 2}));
}

#[tokio::test]
async fn a_question_is_answered_within_one_deadline() {
    let merchant = Merchant::new();
    let endpoint = endpoint(&merchant.running.url("/sku/TEE/variants"), &oauth(&merchant));
    let question = Query {
        merchant: "blue".to_owned(),
        api_version: "1",
        traceparent: None,
        longest_answer: 200_000,
    };
    let ask = async |endpoint_client: &EndpointClient| {
        endpoint_client.ask(&question, &endpoint, now(), Jitter::MIDDLE).await
    };
    let patient = endpoint_client(5000);
    let answer = ask(&patient).await;
    assert_eq!(answer.outcome, Outcome::Delivered { status: 200 });
    let variants: Value = serde_json::from_slice(&answer.answer).unwrap();
    assert_eq!(variants[0]["sku"], "TEE-S");
    let seen = &merchant.journal("/sku/TEE/variants").await.entries[0].headers;
    assert_eq!(seen["x-service-api-version"], "1");
    assert_eq!(seen["x-service-id"], "blue");
    assert!(!seen.contains_key("webhook-id"));

    let expire = json!([{"do": "expire_token", "times": "always"}]);
    merchant.behave("/sku/TEE/variants", expire).await;
    assert_eq!(ask(&patient).await.outcome, Outcome::Delivered { status: 200 });

    let huge = json!([{"do": "huge", "bytes": 200_000}, {"do": "huge", "bytes": 200_001}]);
    merchant.behave("/sku/TEE/variants", huge).await;
    assert_eq!(ask(&patient).await.answer.len(), 200_000);
    assert_eq!(ask(&patient).await.outcome, Outcome::AnswerTooLarge { status: 200 });

    let slow = json!([{"do": "answer", "status": 401, "delay_ms": 200, "times": "always"}]);
    merchant.behave("/sku/TEE/variants", slow).await;
    let hasty = ask(&endpoint_client(300)).await;
    assert_eq!(hasty.outcome, Outcome::TimedOut);
    assert!(hasty.latency < Duration::from_millis(200), "{:?}", hasty.latency);
}
